package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/multilock/go/multilock/source"
)

// Shelf is what an author writes for the manifest of a group. Errors name the step.
type Shelf interface {
	// Contents are those of the manifest that is there, nil if there is none.
	Contents(ctx context.Context, op string) (*Contents, error)
	// Put makes the parts the group's manifest, in one step, if it has none. It gives the contents of
	// the one that is there then.
	Put(ctx context.Context, op string, mine Contents, parts [][]byte) (*Contents, error)
	// Part is a part of the manifest with these contents.
	Part(ctx context.Context, op string, of Contents, n int) ([]byte, error)
}

// ErrRetracted says that a manifest was retracted while it was published, or read.
var ErrRetracted = fmt.Errorf("it was retracted meanwhile: %w", source.ErrPassing)

// ManifestLimits are those of a server.
type ManifestLimits struct {
	Part, Most int    // bytes of a part, and of a manifest
	Server     string // for people
}

// Check refuses a manifest that is too large.
func (l ManifestLimits) Check(manifest []byte) error {
	if len(manifest) <= l.Most {
		return nil
	}
	return &source.InvalidError{
		What: "list", Got: fmt.Sprintf("%d bytes", len(manifest)),
		Why: fmt.Sprintf("at most %d are kept in %s; cut it into several, each in a group of its own (-g)", l.Most, l.Server),
	}
}

// Publish is for source.ManifestStore.
func (l ManifestLimits) Publish(ctx context.Context, shelf Shelf, manifest []byte) ([]byte, error) {
	const op = "publish the list"
	if err := l.Check(manifest); err != nil {
		return nil, err
	}
	mine, parts := Cut(manifest, l.Part)
	there, err := shelf.Contents(ctx, op)
	if err == nil && there == nil {
		there, err = shelf.Put(ctx, op, mine, parts)
	}
	switch {
	case err != nil:
		return nil, err
	case there.Same(mine):
		return manifest, nil
	}
	return join(ctx, shelf, op, *there)
}

func join(ctx context.Context, shelf Shelf, op string, c Contents) ([]byte, error) {
	return c.Join(func(n int) ([]byte, error) { return shelf.Part(ctx, op, c, n) })
}

// OpenManifest is for source.ManifestStore.
func OpenManifest(ctx context.Context, shelf Shelf) (io.ReadCloser, error) {
	const op = "read the list"
	c, err := shelf.Contents(ctx, op)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, fs.ErrNotExist
	}
	manifest, err := join(ctx, shelf, op, *c)
	return io.NopCloser(bytes.NewReader(manifest)), err
}
