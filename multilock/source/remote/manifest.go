package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/multilock/go/multilock/source"
)

// contents lists the parts of a group's manifest, which are entries below a unique ID. A publisher
// writes its own parts first, and then, in one step, the contents.
type contents struct {
	Version int    `json:"v"`
	ID      string `json:"id"`
	Parts   int    `json:"parts"`
	Sum     []byte `json:"sha256"`
}

var (
	errRetracted = fmt.Errorf("it was retracted meanwhile: %w", source.ErrPassing)
	errOther     = errors.New("it is not what was published")
)

// CheckManifest rejects a manifest of more than most bytes. server is named in the error.
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

// parts is the prefix of the keys of a list's parts.
func (t *Table) parts(id string) string { return t.key(manifestKind, id) + separator }

func (t *Table) partKey(id string, n int) string { return fmt.Sprintf("%s%03d", t.parts(id), n) }

// Publish implements source.ManifestStore.
func (t *Table) Publish(ctx context.Context, manifest []byte) ([]byte, error) {
	const op = "publish the list"
	if err := CheckManifest(manifest, t.limits.Parts*t.limits.Value, t.limits.Server); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(manifest)
	there, err := t.contents(ctx, op)
	if err == nil && there == nil {
		there, err = t.put(ctx, op, contents{Version: 1, ID: source.NewToken(), Sum: sum[:]}, manifest)
	}
	switch {
	case err != nil:
		return nil, err
	case bytes.Equal(there.Sum, sum[:]):
		return manifest, nil
	}
	return t.join(ctx, op, *there)
}

// put writes the parts, and then the contents if there are none. A concurrent retraction has
// removed the parts.
func (t *Table) put(ctx context.Context, op string, mine contents, manifest []byte) (*contents, error) {
	txn := Txn{If: []Cond{{Key: t.contentsKey(), Field: IfAbsent}}, Show: []Range{{Key: t.contentsKey()}}}
	for part := range slices.Chunk(manifest, t.limits.Value) {
		key := t.partKey(mine.ID, mine.Parts)
		if _, err := t.apply(ctx, op, "", Txn{Then: []Write{{Key: key, Value: part}}}); err != nil {
			return nil, err
		}
		txn.If = append(txn.If, Cond{Key: key, Field: IfExists})
		mine.Parts++
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	txn.Then = []Write{{Key: t.contentsKey(), Value: text}}
	a, err := t.apply(ctx, op, "", txn)
	if err != nil {
		return nil, err
	}
	there, err := t.decode(a.first(0))
	switch {
	case err == nil && there == nil:
		return nil, t.Named(ctx, op, "", errRetracted)
	case err == nil && there.ID != mine.ID:
		_, _ = t.apply(ctx, op, "", Txn{Then: []Write{{Key: t.parts(mine.ID), Below: true}}})
	}
	return there, err
}

// contents returns the contents of the current list, nil if there is none.
func (t *Table) contents(ctx context.Context, op string) (*contents, error) {
	e, err := t.get(ctx, op, "", t.contentsKey())
	if err != nil {
		return nil, err
	}
	return t.decode(e)
}

func (t *Table) decode(e *Entry) (*contents, error) {
	if e == nil {
		return nil, nil //nolint:nilnil // there is no list
	}
	var c contents
	if json.Unmarshal(e.Value, &c) != nil || c.Version != 1 || c.Parts < 0 || c.Parts > t.limits.Parts {
		return nil, &source.InvalidError{What: "list", Got: e.Key, Why: "it is not one of this multilock; remove it from the store"}
	}
	return &c, nil
}

// join concatenates the parts.
func (t *Table) join(ctx context.Context, op string, c contents) (manifest []byte, err error) {
	for n := range c.Parts {
		e, err := t.get(ctx, op, "", t.partKey(c.ID, n))
		if err == nil && e == nil {
			err = t.Named(ctx, op, "", errRetracted)
		}
		if err != nil {
			return nil, err
		}
		manifest = append(manifest, e.Value...)
	}
	if sum := sha256.Sum256(manifest); !bytes.Equal(sum[:], c.Sum) {
		return nil, errOther
	}
	return manifest, nil
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

// Retract implements source.ManifestStore. Its condition is the current list, so a delayed request
// does not remove a later one. It also removes the parts of lists that are being published.
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
