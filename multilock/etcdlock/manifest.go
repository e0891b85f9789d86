package etcdlock

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
)

// A manifest is cut into parts that fit into a request each. Who publishes writes his own parts
// first, and then, in one step, the key that names them.

var (
	_ source.ManifestStore  = (*Source)(nil)
	_ source.ManifestReader = (*Source)(nil)
)

const (
	partSize = 1 << 20
	// maxManifest is the largest manifest: a transaction may ask for 128 keys.
	maxManifest = 64 * partSize
)

// contents is the key of a group's manifest.
type contents struct {
	Version int    `json:"v"`
	ID      string `json:"id"` // of its parts
	Parts   int    `json:"parts"`
	Sum     []byte `json:"sha256"`
}

func (s *Source) manifestKey() string { return s.key(manifestKind, "list") }

func (s *Source) partKey(id string, n int) string {
	return s.key(manifestKind, fmt.Sprintf("%s/%03d", id, n))
}

// Publish implements source.ManifestStore.
func (s *Source) Publish(ctx context.Context, manifest []byte) ([]byte, error) {
	const op = "publish the manifest"
	if len(manifest) > maxManifest {
		return nil, &source.InvalidError{What: "list", Got: fmt.Sprintf("%d bytes", len(manifest)), Why: fmt.Sprintf("at most %d are kept in etcd; cut it into several, each in a group of its own (-g)", maxManifest)}
	}
	sum := sha256.Sum256(manifest)
	there, err := s.contents(ctx, op)
	if err == nil && there == nil {
		mine := contents{Version: 1, ID: source.NewToken(), Sum: sum[:]}
		there, err = s.publish(ctx, op, mine, manifest)
	}
	switch {
	case err != nil:
		return nil, err
	case bytes.Equal(there.Sum, sum[:]):
		return manifest, nil
	}
	return s.parts(ctx, *there)
}

// publish writes the parts, and names them if nobody has published meanwhile.
func (s *Source) publish(ctx context.Context, op string, mine contents, manifest []byte) (*contents, error) {
	t := transaction{when: []clientv3.Cmp{absent(s.manifestKey())}, or: []clientv3.Op{clientv3.OpGet(s.manifestKey())}}
	for rest := manifest; len(rest) > 0; mine.Parts++ {
		size := min(len(rest), partSize)
		key := s.partKey(mine.ID, mine.Parts)
		put := transaction{then: []clientv3.Op{clientv3.OpPut(key, string(rest[:size]))}}
		if _, _, err := s.commit(ctx, put); err != nil {
			return nil, s.opError(ctx, op, "", err)
		}
		t.when = append(t.when, clientv3.Compare(clientv3.CreateRevision(key), ">", 0)) // a retraction removes all parts
		rest = rest[size:]
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	t.then = []clientv3.Op{clientv3.OpPut(s.manifestKey(), string(text))}
	resp, _, err := s.commit(ctx, t)
	if err != nil {
		return nil, s.opError(ctx, op, "", err)
	}
	there := &mine
	if !resp.Succeeded {
		if there, err = s.readContents(first(resp, 0)); err != nil {
			return nil, err
		}
	}
	switch {
	case there == nil:
		return nil, s.opError(ctx, op, "", errRetracted)
	case there.ID != mine.ID:
		_, _, _ = s.commit(ctx, transaction{then: []clientv3.Op{clientv3.OpDelete(s.key(manifestKind, mine.ID)+separator, clientv3.WithPrefix())}})
	}
	return there, nil
}

var errRetracted = fmt.Errorf("it was retracted meanwhile: %w", source.ErrPassing)

// contents reads the group's, nil if there is no manifest.
func (s *Source) contents(ctx context.Context, op string) (*contents, error) {
	resp, err := s.read(ctx, op, "", clientv3.OpGet(s.manifestKey()))
	if err != nil || first(resp, 0) == nil {
		return nil, err
	}
	return s.readContents(first(resp, 0))
}

func (s *Source) readContents(kv *keyValue) (*contents, error) {
	if kv == nil {
		return nil, nil
	}
	var c contents
	if json.Unmarshal(kv.Value, &c) != nil || c.Version != 1 || c.Parts < 0 || c.Parts > maxManifest/partSize {
		return nil, s.at.Invalid("the key " + s.manifestKey() + " is not a manifest of this multilock; remove it")
	}
	return &c, nil
}

// parts reads the parts of a manifest.
func (s *Source) parts(ctx context.Context, c contents) ([]byte, error) {
	var manifest []byte
	for n := range c.Parts {
		resp, err := s.read(ctx, "read the manifest", "", clientv3.OpGet(s.partKey(c.ID, n)))
		if err != nil {
			return nil, err
		}
		part := first(resp, 0)
		if part == nil {
			return nil, s.opError(ctx, "read the manifest", "", errRetracted)
		}
		manifest = append(manifest, part.Value...)
	}
	if sum := sha256.Sum256(manifest); !bytes.Equal(sum[:], c.Sum) {
		return nil, s.at.Invalid("the manifest below " + s.manifestKey() + " is not what was published; remove it")
	}
	return manifest, nil
}

// OpenManifest implements source.ManifestReader.
func (s *Source) OpenManifest(ctx context.Context) (io.ReadCloser, error) {
	c, err := s.contents(ctx, "read the manifest")
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, fs.ErrNotExist
	}
	manifest, err := s.parts(ctx, *c)
	return io.NopCloser(bytes.NewReader(manifest)), err
}

// Retract implements source.ManifestStore. It asks for the manifest that is there now: carried
// out late, it does not remove a later one. The parts of those who are about to publish go, too.
func (s *Source) Retract(ctx context.Context) error {
	const op = "retract the manifest"
	resp, err := s.read(ctx, op, "", clientv3.OpGet(s.manifestKey()))
	if err != nil || first(resp, 0) == nil {
		return err
	}
	_, _, err = s.commit(ctx, transaction{
		when: []clientv3.Cmp{held(s.manifestKey(), first(resp, 0).CreateRevision)},
		then: []clientv3.Op{clientv3.OpDelete(s.all(manifestKind), clientv3.WithPrefix())},
	})
	return s.opError(ctx, op, "", err)
}
