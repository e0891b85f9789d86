package etcdlock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var (
	_ source.ManifestStore  = (*Source)(nil)
	_ source.ManifestReader = (*Source)(nil)
)

const (
	partSize = 1 << 20
	// mostParts are those of the largest manifest: a transaction may ask for 128 keys.
	mostParts = 64
)

func (s *Source) manifestKey() string { return s.key(manifestKind, "list") }

func (s *Source) partKey(id string, n int) string {
	return s.key(manifestKind, fmt.Sprintf("%s/%03d", id, n))
}

// Publish implements source.ManifestStore.
func (s *Source) Publish(ctx context.Context, manifest []byte) ([]byte, error) {
	if len(manifest) > mostParts*partSize {
		return nil, &source.InvalidError{What: "list", Got: fmt.Sprintf("%d bytes", len(manifest)), Why: fmt.Sprintf("at most %d are kept in etcd; cut it into several, each in a group of its own (-g)", mostParts*partSize)}
	}
	mine, parts := remote.Cut(manifest, partSize)
	there, err := s.contents(ctx, "publish the manifest")
	if err == nil && there == nil {
		there, err = s.publish(ctx, mine, parts)
	}
	switch {
	case err != nil:
		return nil, err
	case there.Same(mine):
		return manifest, nil
	}
	return s.join(ctx, *there)
}

// publish writes the parts, and names them if nobody has published meanwhile, or retracted: that
// removes all parts.
func (s *Source) publish(ctx context.Context, mine remote.Contents, parts [][]byte) (*remote.Contents, error) {
	const op = "publish the manifest"
	t := transaction{
		when: []clientv3.Cmp{absent(s.manifestKey())}, then: []clientv3.Op{clientv3.OpPut(s.manifestKey(), mine.Encode())},
		or: []clientv3.Op{clientv3.OpGet(s.manifestKey())},
	}
	for n, part := range parts {
		key := s.partKey(mine.ID, n)
		if _, _, err := s.commit(ctx, transaction{then: []clientv3.Op{clientv3.OpPut(key, string(part))}}); err != nil {
			return nil, s.opError(ctx, op, "", err)
		}
		t.when = append(t.when, clientv3.Compare(clientv3.CreateRevision(key), ">", 0))
	}
	resp, _, err := s.commit(ctx, t)
	if err != nil {
		return nil, s.opError(ctx, op, "", err)
	}
	if resp.Succeeded {
		return &mine, nil
	}
	there, err := s.readContents(first(resp, 0))
	switch {
	case err != nil:
		return nil, err
	case there == nil:
		return nil, s.opError(ctx, op, "", errRetracted)
	case there.ID != mine.ID:
		_, _, _ = s.commit(ctx, transaction{then: []clientv3.Op{clientv3.OpDelete(s.key(manifestKind, mine.ID)+separator, clientv3.WithPrefix())}})
	}
	return there, nil
}

var errRetracted = fmt.Errorf("it was retracted meanwhile: %w", source.ErrPassing)

// contents reads the group's, nil if there is no manifest.
func (s *Source) contents(ctx context.Context, op string) (*remote.Contents, error) {
	resp, err := s.read(ctx, op, "", clientv3.OpGet(s.manifestKey()))
	if err != nil {
		return nil, err
	}
	return s.readContents(first(resp, 0))
}

func (s *Source) readContents(kv *keyValue) (*remote.Contents, error) {
	if kv == nil {
		return nil, nil
	}
	c, err := remote.DecodeContents(kv.Value, mostParts)
	if err != nil {
		return nil, s.spoilt(err)
	}
	return &c, nil
}

func (s *Source) spoilt(why error) error {
	return s.at.Invalid(fmt.Sprintf("remove the manifest, %s: %v", s.manifestKey(), why))
}

// join reads the parts of a manifest.
func (s *Source) join(ctx context.Context, c remote.Contents) ([]byte, error) {
	const op = "read the manifest"
	manifest, err := c.Join(func(n int) ([]byte, error) {
		resp, err := s.read(ctx, op, "", clientv3.OpGet(s.partKey(c.ID, n)))
		switch {
		case err != nil:
			return nil, err
		case first(resp, 0) == nil:
			return nil, s.opError(ctx, op, "", errRetracted)
		}
		return first(resp, 0).Value, nil
	})
	if errors.Is(err, remote.ErrOtherParts) {
		err = s.spoilt(err)
	}
	return manifest, err
}

// OpenManifest implements source.ManifestReader.
func (s *Source) OpenManifest(ctx context.Context) (io.ReadCloser, error) {
	c, err := s.contents(ctx, "read the manifest")
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, fs.ErrNotExist
	}
	manifest, err := s.join(ctx, *c)
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
