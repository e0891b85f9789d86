package etcdlock

import (
	"time"

	"github.com/multilock/go/multilock/source/remote"
)

const pkg = "etcdlock"

// Options select the location and the group of locks.
type Options = remote.Options[Place]

// Source has the locks of one group below one prefix, and the results of the jobs that ran under
// them.
type Source struct {
	remote.Table
	*server
}

var _ remote.Abilities = (*Source)(nil)

// limits follow from those of a request: 1.5 MB, and conditions on 128 keys.
var limits = remote.Limits{Value: 1 << 20, Parts: 64, Unheard: time.Minute, Server: "etcd"}

// Open prepares to use the locks of a group. It does not connect to the servers: the first call
// that needs them does. The error is source.ErrInvalid for a location or a group that cannot be
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
	return &Source{remote.NewTable(member, server, server.at.prefix+"/", limits), server}, nil
}

// Close closes the connections. Locks that were acquired through the source stay held, and can no
// longer be renewed or released.
func (s *Source) Close() error { return s.disconnect() }
