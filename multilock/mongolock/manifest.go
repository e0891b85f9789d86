package mongolock

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// The manifest of a group is a document of the collection COLLECTION.groups, which is inserted once
// and never changed.

var (
	_ source.ManifestStore = (*Source)(nil)
)

const manifestField = "manifest"

// maxManifest leaves room in a document, which is limited to 16 MiB.
const maxManifest = 16<<20 - 4<<10

// Publish implements source.ManifestStore. One command inserts the manifest unless the group has one,
// and returns the current one.
func (s *Source) Publish(ctx context.Context, manifest []byte) ([]byte, error) {
	if err := remote.CheckManifest(manifest, maxManifest, "a document of MongoDB"); err != nil {
		return nil, err
	}
	var current []byte
	err := s.command(ctx, "publish the manifest", "", func(ctx context.Context, _ facts) (err error) {
		current, err = s.publish(ctx, manifest)
		if mongo.IsDuplicateKeyError(err) { // one of two concurrent inserts may fail
			current, err = s.publish(ctx, manifest)
		}
		return err
	})
	return current, err
}

func (s *Source) publish(ctx context.Context, manifest []byte) ([]byte, error) {
	update := bson.D{{Key: "$setOnInsert", Value: bson.D{{Key: manifestField, Value: manifest}}}}
	opt := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)
	doc, err := s.collection(groupsSuffix).FindOneAndUpdate(ctx, s.ofManifest(), update, opt).Raw()
	if err != nil {
		return nil, err
	}
	return s.manifestIn(doc)
}

func (s *Source) manifestIn(doc bson.Raw) ([]byte, error) {
	_, manifest, ok := doc.Lookup(manifestField).BinaryOK()
	if !ok {
		return nil, s.refuse("the document of the group in its collection " + s.name + groupsSuffix + " has no manifest; remove it")
	}
	return manifest, nil
}

// OpenManifest implements source.ManifestStore.
func (s *Source) OpenManifest(ctx context.Context) (io.ReadCloser, error) {
	var manifest []byte
	err := s.command(ctx, "read the manifest", "", func(ctx context.Context, f facts) error {
		doc, err := s.reading(groupsSuffix, f, settled).FindOne(ctx, s.ofManifest()).Raw()
		if err == nil {
			manifest, err = s.manifestIn(doc)
		}
		return err
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		err = fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(manifest)), err
}

// Retract implements source.ManifestStore.
func (s *Source) Retract(ctx context.Context) error {
	return s.command(ctx, "retract the manifest", "", func(ctx context.Context, _ facts) error {
		_, err := s.collection(groupsSuffix).DeleteOne(ctx, s.ofManifest())
		return err
	})
}

// ofManifest returns the filter for the group's manifest. The default group uses a slash, which
// cannot be the name of a group.
func (s *Source) ofManifest() bson.D {
	if s.Group() == "" {
		return bson.D{{Key: idField, Value: separator}}
	}
	return bson.D{{Key: idField, Value: s.Group()}}
}
