package etcdlock

import (
	"context"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
)

var _ source.Ledger = (*Source)(nil)

// touch counts a change of the group's results.
func (s *Source) touch() clientv3.Op { return clientv3.OpPut(s.all(changesKind), "") }

// Result implements source.Ledger.
func (s *Source) Result(ctx context.Context, name string) (source.Result, error) {
	return s.ReadResult(name, func() ([]byte, error) {
		kv, err := s.get(ctx, "read the result", name, s.key(resultKind, name))
		return valueOf(kv), err
	})
}

// Results implements source.Ledger.
func (s *Source) Results(ctx context.Context) ([]string, error) {
	return s.list(ctx, "list the results", resultKind)
}

// Revision implements source.Ledger: the revision of a key that each commit and each removal
// writes. It needs no clock.
func (s *Source) Revision(ctx context.Context) (string, error) {
	kv, err := s.get(ctx, "look at the results", "", s.all(changesKind))
	if kv == nil {
		return "", err
	}
	return strconv.FormatInt(kv.ModRevision, 10), nil
}
