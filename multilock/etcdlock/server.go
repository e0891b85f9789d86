package etcdlock

import (
	"cmp"
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/multilock/go/multilock/source/remote"
)

// server is the client of a cluster.
type server struct {
	at      address
	timeout time.Duration
	hook    rpcHook
	leases  *leases

	mu     sync.Mutex
	client *clientv3.Client // nil before the first use
	closed bool
}

func newServer(at Place) (*server, error) {
	a, err := parseURL(at.URL)
	if err != nil {
		return nil, err
	}
	timeout, err := remote.Timeout(at.Timeout, DefaultTimeout)
	s := &server{at: a, timeout: timeout}
	s.leases = &leases{server: s}
	return s, err
}

const (
	// pinged is how often an idle connection is checked, and pingAnswers the time limit of the
	// check. After that the client switches to another member.
	pinged      = 10 * time.Second
	pingAnswers = 4 * time.Second
	dialTimeout = 4 * time.Second
	// leaving is the time limit for closing a source or a contender.
	leaving = 1300 * time.Millisecond
)

// connect returns the client, which authenticates with its first call.
func (s *server) connect() (*clientv3.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errClosed
	case s.client != nil:
		return s.client, nil
	}
	options := []grpc.DialOption{grpc.WithStatsHandler(&s.hook), grpc.WithChainUnaryInterceptor(s.hook.invoke)}
	if s.at.tls != nil && s.at.tls.ServerName != "" {
		options = append(options, grpc.WithAuthority(s.at.tls.ServerName))
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: s.at.endpoints, TLS: s.at.tls, Username: s.at.user, Password: s.at.password,
		DialTimeout: dialTimeout, DialKeepAliveTime: pinged, DialKeepAliveTimeout: pingAnswers, Logger: zap.NewNop(),
		DialOptions: options,
	})
	if err == nil {
		s.client = client
	}
	return client, err
}

// disconnect closes the connections.
func (s *server) disconnect() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.client == nil {
		return nil
	}
	_ = s.client.Close() // always fails: its own context has ended
	return nil
}

// longestTry is the time limit of a try, after which the client switches to another member.
const longestTry = 3 * time.Second

// repeat sends a request that may be carried out more than once, until it is answered: see
// remote.Repeat. A member without a leader fails at once, instead of waiting for one.
func (s *server) repeat(ctx context.Context, limit time.Duration, ask func(context.Context, *clientv3.Client) error) (doubt bool, err error) {
	return remote.Repeat(clientv3.WithRequireLeader(ctx), min(cmp.Or(limit, s.timeout), s.timeout), longestTry, func(ctx context.Context) (remote.Tried, error) {
		client, err := s.connect()
		ctx, out := watched(ctx)
		if err == nil {
			err = ask(ctx, client)
		}
		sent := out.Load() // how often the request was sent
		return remote.Tried{Doubt: sent > 1 || sent == 1 && inDoubt(err), Again: inDoubt(err), Told: isServerError(err), Nobody: s.unreachable(err)}, err
	})
}

// unreachable reports whether no member was ever reached.
func (s *server) unreachable(err error) bool {
	return !s.hook.answered.Load() && codeOf(err) == codes.Unavailable
}
