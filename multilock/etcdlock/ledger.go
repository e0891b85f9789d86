package etcdlock

import (
	"bytes"
	"context"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// The last result of a name is a key beside its lock, and is written in a transaction that asks
// for the writer's lock: nobody can take the lock and not see it.

var (
	_ source.Committer = (*lease)(nil)
	_ source.Changes   = (*Source)(nil)
)

// Commit implements source.Committer.
func (l *lease) Commit(ctx context.Context, r source.Result) error {
	const op = "commit the result"
	content, err := remote.EncodeResult(r)
	if err != nil {
		return l.src.opError(ctx, op, l.Record().Name, err)
	}
	made := func(resp *clientv3.TxnResponse) bool {
		stored := first(resp, 1)
		return stored != nil && bytes.Equal(stored.Value, content)
	}
	_, err = l.change(ctx, op, nothing, made, transaction{
		then: []clientv3.Op{clientv3.OpPut(l.key(resultKind), string(content)), l.src.touch()},
		or:   []clientv3.Op{clientv3.OpGet(l.key(resultKind))},
	})
	return err
}

// Forget implements source.Committer.
func (l *lease) Forget(ctx context.Context) error {
	_, err := l.change(ctx, "forget the result", nothing, unseen, transaction{
		then: []clientv3.Op{clientv3.OpDelete(l.key(resultKind)), l.src.touch()},
	})
	return err
}

// touch counts a change of the group's results.
func (s *Source) touch() clientv3.Op { return clientv3.OpPut(s.all(changesKind), "") }

// Outcome implements source.Committer: one instant shows the result, and that the lock is held.
func (l *lease) Outcome(ctx context.Context) (source.Result, error) {
	if err := l.Ended(); err != nil {
		return source.Result{}, err
	}
	name := l.Record().Name
	resp, err := l.src.read(ctx, "ask for the result", name, clientv3.OpGet(l.key(lockKind), clientv3.WithKeysOnly()), clientv3.OpGet(l.key(resultKind)))
	switch {
	case err != nil:
		return source.Result{}, err
	case !l.isMine(first(resp, 0)):
		return source.Result{}, l.Lost(errGone)
	}
	return readResult(name, first(resp, 1))
}

// Result implements source.Ledger.
func (s *Source) Result(ctx context.Context, name string) (source.Result, error) {
	if err := s.CheckName(name); err != nil {
		return source.Result{}, err
	}
	resp, err := s.read(ctx, "read the result", name, clientv3.OpGet(s.key(resultKind, name)))
	if err != nil {
		return source.Result{}, err
	}
	return readResult(name, first(resp, 0))
}

// Results implements source.Ledger.
func (s *Source) Results(ctx context.Context) ([]string, error) {
	return s.list(ctx, "list the results", resultKind)
}

// Revision implements source.Changes: the revision of a key that each commit and each removal
// writes. It needs no clock.
func (s *Source) Revision(ctx context.Context) (string, error) {
	resp, err := s.read(ctx, "look at the results", "", clientv3.OpGet(s.all(changesKind)))
	if err != nil || first(resp, 0) == nil {
		return "", err
	}
	return strconv.FormatInt(first(resp, 0).ModRevision, 10), nil
}

func readResult(name string, kv *keyValue) (source.Result, error) {
	if kv == nil {
		return source.Result{}, source.ErrNoResult
	}
	return remote.DecodeResult(name, kv.Value), nil
}
