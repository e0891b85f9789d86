package etcdlock

import (
	"time"

	"github.com/multilock/go/multilock/source/remote"
)

const pkg = "etcdlock"

// Options say where the locks live, and which are meant.
type Options = remote.Options[Place]

// Source is the locks of one group below one prefix, and the results of the jobs that ran under
// them.
type Source struct {
	remote.Table
	*server
}

var _ remote.Abilities = (*Source)(nil)

// limits are those of a request: 1.5 MB, and conditions on 128 keys.
var limits = remote.Limits{Value: 1 << 20, Parts: 64, Unheard: time.Minute, Server: "etcd"}

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
	return &Source{remote.NewTable(member, server, server.at.prefix+"/", limits), server}, nil
}

// Close ends the connections. Locks that were acquired through the source stay held, and can be
// neither renewed nor released any more.
func (s *Source) Close() error { return s.disconnect() }
