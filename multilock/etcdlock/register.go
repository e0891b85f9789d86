package etcdlock

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var _ source.Registrar = (*Source)(nil)

// Register implements source.Registrar.
func (s *Source) Register(name string) (source.Register, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	return remote.NewRegister(cell{s, name}), nil
}

// Registers implements source.Registrar.
func (s *Source) Registers(ctx context.Context) ([]string, error) {
	return s.list(ctx, "list the registers", registerKind)
}

// cell is the key of a register; how often it was written numbers the swaps.
type cell struct {
	*Source
	name string
}

func (c cell) where() string { return c.key(registerKind, c.name) }

// Replace implements remote.Cell.
func (c cell) Replace(ctx context.Context, this remote.Content, value []byte) (now remote.Content, doubt bool, err error) {
	unchanged := []clientv3.Cmp{absent(c.where())}
	if this.Number > 0 {
		unchanged = []clientv3.Cmp{
			clientv3.Compare(clientv3.Version(c.where()), "=", int64(this.Number)), //nolint:gosec // it was one
			clientv3.Compare(clientv3.Value(c.where()), "=", string(this.Value)),
		}
	}
	resp, doubt, err := c.commit(ctx, transaction{
		when: unchanged, then: []clientv3.Op{clientv3.OpPut(c.where(), string(value))}, or: []clientv3.Op{clientv3.OpGet(c.where())},
	})
	switch {
	case err != nil:
		return now, doubt, c.opError(ctx, "swap", c.name, err)
	case resp.Succeeded:
		return remote.Content{Value: value, Number: this.Number + 1}, doubt, nil
	}
	return content(first(resp, 0)), doubt, nil
}

// Read implements remote.Cell.
func (c cell) Read(ctx context.Context) (remote.Content, error) {
	resp, err := c.read(ctx, "look at the register", c.name, clientv3.OpGet(c.where()))
	if err != nil {
		return remote.Content{}, err
	}
	return content(first(resp, 0)), nil
}

func content(kv *keyValue) remote.Content {
	if kv == nil {
		return remote.Content{}
	}
	return remote.Content{Value: append([]byte{}, kv.Value...), Number: uint64(kv.Version)} //nolint:gosec // counts from 1
}
