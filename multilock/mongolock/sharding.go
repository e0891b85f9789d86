package mongolock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/multilock/source"
)

// A collection of locks loses them by an index that removes documents, and has two
// documents of one name if it is sharded by another key than that. Neither is asked for
// before a lock is taken; doctor looks.

// indexes are those of the locks' collection.
func (s *Source) indexes(ctx context.Context) (specs []mongo.IndexSpecification, err error) {
	err = s.repeat(ctx, s.timeout, func(ctx context.Context) (err error) {
		specs, err = s.collection(locksSuffix).Indexes().ListSpecifications(ctx)
		return err
	})
	return specs, err
}

// findExpiry looks for an index by which the server removes documents when they are old.
func findExpiry(specs []mongo.IndexSpecification, err error) source.Finding {
	const subject = "TTL index"
	if err != nil {
		return source.Warning(subject, "the indexes cannot be listed: "+err.Error(), "have an administrator look whether one of them has expireAfterSeconds")
	}
	found := source.Fine(subject, "there is none: nothing removes locks and results but their users")
	for _, i := range specs {
		if i.ExpireAfterSeconds == nil {
			continue
		}
		text := fmt.Sprintf("the index %q removes documents %d s after the time in %s: ", i.Name, *i.ExpireAfterSeconds, fields(i.KeysDocument))
		advice := fmt.Sprintf("drop it: dropIndex(%q)", i.Name)
		if touchesLock(i.KeysDocument) {
			return source.Unusable(subject, text+"also those of locks that are held", advice)
		}
		found = source.Warning(subject, text+"results and fencing numbers would go with them", advice)
	}
	return found
}

// fields names the fields of an index or a shard key.
func fields(key bson.Raw) string {
	elements, _ := key.Elements()
	names := make([]string, len(elements))
	for i, e := range elements {
		names[i] = e.Key()
	}
	return strings.Join(names, ", ")
}

// touchesLock says whether a key is of a time that is in each document of a held lock.
func touchesLock(key bson.Raw) bool {
	return slices.ContainsFunc([]string{acquiredField, seenField}, func(name string) bool {
		_, err := key.LookupErr(name)
		return err == nil
	})
}

// shardKey is by which key the collection is divided; nil if it is not sharded.
func (s *Source) shardKey(ctx context.Context) (bson.Raw, error) {
	var entry struct {
		Key     bson.Raw `bson:"key"`
		Dropped bool     `bson:"dropped"`
	}
	err := s.repeat(ctx, s.timeout, func(ctx context.Context) error {
		namespace := s.database.Name() + "." + s.name
		return s.database.Client().Database("config").Collection("collections").FindOne(ctx, bson.D{{Key: idField, Value: namespace}}).Decode(&entry)
	})
	if errors.Is(err, mongo.ErrNoDocuments) || entry.Dropped {
		return nil, nil //nolint:nilnil // it has none
	}
	return entry.Key, err
}

// findSharding judges the key of a collection in a sharded cluster.
func findSharding(key bson.Raw, err error) source.Finding {
	const subject = "shard key"
	switch {
	case err != nil:
		return source.Warning(subject, "the cluster does not tell the collection's shard key: "+err.Error(),
			"have an administrator look that it is _id: with another one a name can have two locks")
	case key == nil:
		return source.Fine(subject, "the collection is not sharded")
	case fields(key) == idField:
		return source.Fine(subject, "the collection is sharded by _id")
	}
	return source.Unusable(subject, fmt.Sprintf("the collection is sharded by %s: a name can have a document, and a holder, on each shard", fields(key)),
		"use a collection that is not sharded, or sharded by _id")
}
