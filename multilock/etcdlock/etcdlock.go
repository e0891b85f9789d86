package etcdlock

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

const pkg = "etcdlock"

// Options say where the locks live, and which are meant.
type Options = remote.Options[Place]

// Source is the locks of one group below one prefix, and the results of the jobs that ran
// under them.
type Source struct {
	remote.Member
	*server
	leases *leases
	root   string // of all keys, with a slash
	silent bool   // no history tells of its locks
}

type keyValue = mvccpb.KeyValue

var _ source.NameChecker = (*Source)(nil)

// Open prepares to use the locks of a group. It does not talk to the servers: the first call
// that needs them does. The error is source.ErrInvalid for a place or a group that cannot be
// used.
func Open(opt Options) (*Source, error) {
	member, err := opt.Join(pkg)
	if err != nil {
		return nil, err
	}
	server, err := newServer(opt.Place)
	if err != nil {
		return nil, err
	}
	return &Source{Member: member, server: server, leases: &leases{server: server}, root: server.at.prefix + "/"}, nil
}

// Close ends the connections. Locks that were acquired through the source stay held, and can be
// neither renewed nor released any more.
func (s *Source) Close() error { return s.disconnect() }

// The kinds of keys: ROOT/KIND/GROUP/NAME.
const (
	lockKind     = "lock"   // the record of who holds the lock
	lifeKind     = "life"   // the holder's sign of life, under its lease
	waitKind     = "wait"   // the tickets of those who wait, each under a lease
	brokeKind    = "broke"  // the token of the last acquisition that was broken
	resultKind   = "result" // how the last job ended
	changesKind  = "changes"
	manifestKind = "manifest"
	historyKind  = "history"
	dayKind      = "day"   // how many days the history has: see journal.go
	queueKind    = "queue" // of those who stand in line with --fair
	registerKind = "register"
)

const separator = "/"

// all is the beginning of all keys of a kind in the group.
func (s *Source) all(kind string) string { return s.root + kind + separator + s.Group() + separator }

func (s *Source) key(kind, name string) string { return s.all(kind) + name }

// Names implements source.Source.
func (s *Source) Names(ctx context.Context) ([]string, error) {
	return s.list(ctx, "list the locks", lockKind)
}

// list gives the names for which the group has a key of a kind, sorted, as the server does.
func (s *Source) list(ctx context.Context, op, kind string) ([]string, error) {
	resp, err := s.read(ctx, op, "", clientv3.OpGet(s.all(kind), clientv3.WithPrefix(), clientv3.WithKeysOnly()))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, kv := range got(resp, 0) {
		if name := strings.TrimPrefix(string(kv.Key), s.all(kind)); s.CheckName(name) == nil {
			names = append(names, name)
		}
	}
	return names, nil
}

// held compares the acquisition that a lock's key was created by.
func held(key string, created int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", created)
}

// absent compares that there is no such key.
func absent(key string) clientv3.Cmp { return held(key, 0) }

var errGone = errors.New("its key is not there any more: the lock was broken or removed")
