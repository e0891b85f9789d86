package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/multilock/go/multilock/source"
)

// The list of a group is entries with its parts, below an ID that is drawn for it, and then one, written in
// one step, with its contents.

// errRetracted says that a manifest was retracted while it was published, or read.
var errRetracted = fmt.Errorf("it was retracted meanwhile: %w", source.ErrPassing)

// CheckManifest refuses a manifest with more than so many bytes. server is for people.
func CheckManifest(manifest []byte, most int, server string) error {
	if len(manifest) <= most {
		return nil
	}
	return &source.InvalidError{
		What: "list", Got: fmt.Sprintf("%d bytes", len(manifest)),
		Why: fmt.Sprintf("at most %d are kept in %s; cut it into several, each in a group of its own (-g)", most, server),
	}
}

func (t *Table) contentsKey() string { return t.key(manifestKind, "list") }

// parts is what the keys of somebody's parts begin with.
func (t *Table) parts(id string) string { return t.key(manifestKind, id) + separator }

func (t *Table) partKey(id string, n int) string { return fmt.Sprintf("%s%03d", t.parts(id), n) }

// Publish implements source.ManifestStore.
func (t *Table) Publish(ctx context.Context, manifest []byte) ([]byte, error) {
	const op = "publish the list"
	if err := CheckManifest(manifest, t.limits.Parts*t.limits.Value, t.limits.Server); err != nil {
		return nil, err
	}
	mine, parts := Cut(manifest, t.limits.Value)
	there, err := t.contents(ctx, op)
	if err == nil && there == nil {
		there, err = t.put(ctx, op, mine, parts)
	}
	switch {
	case err != nil:
		return nil, err
	case there.Same(mine):
		return manifest, nil
	}
	return t.join(ctx, op, *there)
}

// put names the parts if nobody has published meanwhile, or retracted: that removes all parts.
func (t *Table) put(ctx context.Context, op string, mine Contents, parts [][]byte) (*Contents, error) {
	txn := Txn{
		If:   []Cond{{Key: t.contentsKey(), Field: IfAbsent}},
		Then: []Write{{Key: t.contentsKey(), Value: []byte(mine.Encode())}},
		Show: []Range{{Key: t.contentsKey()}},
	}
	for n, part := range parts {
		key := t.partKey(mine.ID, n)
		if _, err := t.apply(ctx, op, "", Txn{Then: []Write{{Key: key, Value: part}}}); err != nil {
			return nil, err
		}
		txn.If = append(txn.If, Cond{Key: key, Field: IfExists})
	}
	a, err := t.apply(ctx, op, "", txn)
	switch {
	case err != nil:
		return nil, err
	case a.first(0) == nil:
		return nil, t.Named(ctx, op, "", errRetracted)
	}
	there, err := t.decode(*a.first(0))
	if err == nil && there.ID != mine.ID {
		_, _ = t.apply(ctx, op, "", Txn{Then: []Write{{Key: t.parts(mine.ID), Below: true}}})
	}
	return there, err
}

// contents are those of the list that is there, nil if there is none.
func (t *Table) contents(ctx context.Context, op string) (*Contents, error) {
	e, err := t.get(ctx, op, "", t.contentsKey())
	if err != nil || e == nil {
		return nil, err
	}
	return t.decode(*e)
}

func (t *Table) decode(e Entry) (*Contents, error) {
	c, err := DecodeContents(e.Value, t.limits.Parts)
	if err != nil {
		return nil, &source.InvalidError{What: "list", Got: e.Key, Why: "remove it from the store: " + err.Error()}
	}
	return &c, nil
}

func (t *Table) join(ctx context.Context, op string, c Contents) ([]byte, error) {
	return c.Join(func(n int) ([]byte, error) {
		e, err := t.get(ctx, op, "", t.partKey(c.ID, n))
		if err == nil && e == nil {
			err = t.Named(ctx, op, "", errRetracted)
		}
		return valueOf(e), err
	})
}

// OpenManifest implements source.ManifestStore.
func (t *Table) OpenManifest(ctx context.Context) (io.ReadCloser, error) {
	const op = "read the list"
	c, err := t.contents(ctx, op)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, fs.ErrNotExist
	}
	manifest, err := t.join(ctx, op, *c)
	return io.NopCloser(bytes.NewReader(manifest)), err
}

// Retract implements source.ManifestStore. It asks for the list that is there now: carried out late, it
// does not remove a later one. The parts of those who are about to publish go, too.
func (t *Table) Retract(ctx context.Context) error {
	const op = "retract the list"
	there, err := t.get(ctx, op, "", t.contentsKey())
	if there == nil {
		return err
	}
	_, err = t.apply(ctx, op, "", Txn{
		If:   []Cond{{Key: there.Key, Field: IfChanged, Number: there.Changed}},
		Then: []Write{{Key: t.all(manifestKind), Below: true}},
	})
	return err
}
