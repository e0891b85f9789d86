package etcdlock

import (
	"context"
	"fmt"
	"io"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var (
	_ source.ManifestStore = (*Source)(nil)
)

const (
	partSize = 1 << 20
	// mostParts are those of the largest manifest: a transaction may ask for 128 keys.
	mostParts = 64
)

// shelf is where the group's manifest is.
type shelf struct{ *Source }

func (s shelf) contentsKey() string { return s.key(manifestKind, "list") }

// of is what the keys of somebody's parts begin with.
func (s shelf) of(id string) string { return s.key(manifestKind, id) + separator }

func (s shelf) partKey(id string, n int) string { return fmt.Sprintf("%s%03d", s.of(id), n) }

// Publish implements source.ManifestStore.
func (s *Source) Publish(ctx context.Context, manifest []byte) ([]byte, error) {
	return remote.ManifestLimits{Part: partSize, Most: mostParts * partSize, Server: "etcd"}.Publish(ctx, shelf{s}, manifest)
}

// OpenManifest implements source.ManifestStore.
func (s *Source) OpenManifest(ctx context.Context) (io.ReadCloser, error) {
	return remote.OpenManifest(ctx, shelf{s})
}

// Contents implements remote.Shelf.
func (s shelf) Contents(ctx context.Context, op string) (*remote.Contents, error) {
	kv, err := s.get(ctx, op, "", s.contentsKey())
	if kv == nil {
		return nil, err
	}
	return s.decode(kv)
}

func (s shelf) decode(kv *keyValue) (*remote.Contents, error) {
	c, err := remote.DecodeContents(kv.Value, mostParts)
	if err != nil {
		return nil, s.at.Invalid(fmt.Sprintf("remove the manifest, %s: %v", kv.Key, err))
	}
	return &c, nil
}

// Put implements remote.Shelf. It names the parts if nobody has published meanwhile, or retracted: that
// removes all parts.
func (s shelf) Put(ctx context.Context, op string, mine remote.Contents, parts [][]byte) (*remote.Contents, error) {
	t := transaction{
		when: []clientv3.Cmp{absent(s.contentsKey())}, then: []clientv3.Op{clientv3.OpPut(s.contentsKey(), mine.Encode())},
		or: []clientv3.Op{clientv3.OpGet(s.contentsKey())},
	}
	for n, part := range parts {
		key := s.partKey(mine.ID, n)
		if _, err := s.read(ctx, op, "", clientv3.OpPut(key, string(part))); err != nil {
			return nil, err
		}
		t.when = append(t.when, clientv3.Compare(clientv3.CreateRevision(key), ">", 0))
	}
	resp, _, err := s.commit(ctx, t)
	switch {
	case err != nil:
		return nil, s.opError(ctx, op, "", err)
	case resp.Succeeded:
		return &mine, nil
	case first(resp, 0) == nil:
		return nil, s.opError(ctx, op, "", remote.ErrRetracted)
	}
	there, err := s.decode(first(resp, 0))
	if err == nil && there.ID != mine.ID {
		_, _ = s.read(ctx, op, "", clientv3.OpDelete(s.of(mine.ID), clientv3.WithPrefix()))
	}
	return there, err
}

// Part implements remote.Shelf.
func (s shelf) Part(ctx context.Context, op string, of remote.Contents, n int) ([]byte, error) {
	kv, err := s.get(ctx, op, "", s.partKey(of.ID, n))
	if err == nil && kv == nil {
		err = s.opError(ctx, op, "", remote.ErrRetracted)
	}
	return valueOf(kv), err
}

// Retract implements source.ManifestStore. It asks for the manifest that is there now: carried
// out late, it does not remove a later one. The parts of those who are about to publish go, too.
func (s *Source) Retract(ctx context.Context) error {
	const op = "retract the list"
	key := shelf{s}.contentsKey()
	there, err := s.get(ctx, op, "", key)
	if there == nil {
		return err
	}
	_, _, err = s.commit(ctx, transaction{
		when: []clientv3.Cmp{held(key, there.CreateRevision)},
		then: []clientv3.Op{clientv3.OpDelete(s.all(manifestKind), clientv3.WithPrefix())},
	})
	return s.opError(ctx, op, "", err)
}
