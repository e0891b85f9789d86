package etcdlock

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source/remote"
)

// server is the cluster behind a source.
type server struct {
	at      address
	timeout time.Duration
	wire    wiretap

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
	return &server{at: a, timeout: timeout}, err
}

const (
	// pinged is how often a silent connection is tried, and for how long: a member that stands
	// still is left for another one.
	pinged      = 10 * time.Second
	pingAnswers = 4 * time.Second
	dialTimeout = 4 * time.Second
	// leaving is how long the end of a source or a contender may take.
	leaving = 1300 * time.Millisecond
)

// connect is the client; a user is asked for a token with the first call.
func (s *server) connect() (*clientv3.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errClosed
	case s.client != nil:
		return s.client, nil
	}
	options := []grpc.DialOption{grpc.WithStatsHandler(&s.wire), grpc.WithChainUnaryInterceptor(s.wire.invoke)}
	if s.at.tls != nil && s.at.tls.ServerName != "" {
		options = append(options, grpc.WithTransportCredentials(named{credentials.NewTLS(s.at.tls), s.at.tls.ServerName}))
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

// disconnect ends the connections.
func (s *server) disconnect() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.client == nil {
		return nil
	}
	_ = s.client.Close() // says that its own context has ended
	return nil
}

const (
	tries      = 4 // that the time of an operation is enough for, at least
	leastTry   = 500 * time.Millisecond
	longestTry = 3 * time.Second // a member that stands still is left for another one
	firstPause = 20 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// repeat sends what may be carried out more than once, until it is answered. It reports
// whether one that got no answer may still be carried out, however late. Where no member has
// ever answered, that none can be talked to is told at once: time does not mend a wrong URL; and
// a member that has no leader says so at once, instead of waiting for one.
func (s *server) repeat(ctx context.Context, limit time.Duration, ask func(context.Context, *clientv3.Client) error) (doubt bool, err error) {
	limit = min(limit, s.timeout)
	limited, cancel := remote.Outlive(clientv3.WithRequireLeader(ctx), limit)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		var sent int32
		sent, err = s.once(limited, min(max(limit/tries, leastTry), longestTry), ask)
		doubt = doubt || sent > 1 || sent == 1 && inDoubt(err)
		if !inDoubt(err) {
			return doubt, err
		}
		if limited.Err() != nil || ctx.Err() != nil || !doubt && s.unreachable(err) {
			return doubt, err
		}
		_ = bounded.Sleep(limited, pause/2+rand.N(pause)) //nolint:gosec // jitter needs no secrecy
	}
}

// once sends a request, and reports how often it left this host.
func (s *server) once(ctx context.Context, limit time.Duration, ask func(context.Context, *clientv3.Client) error) (sent int32, err error) {
	client, err := s.connect()
	if err != nil {
		return 0, err
	}
	ctx, out := watched(ctx)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = ask(ctx, client)
	return out.Load(), err
}

// unreachable says that no member could be talked to, nor could any before.
func (s *server) unreachable(err error) bool {
	return !s.wire.answered.Load() && codeOf(err) == codes.Unavailable
}

// transaction is one request that compares and changes keys, or reads some of one instant.
type transaction struct {
	when       []clientv3.Cmp
	then, or   []clientv3.Op
	onlyWithin time.Duration // a shorter limit, 0 for the usual one
}

// commit carries a transaction out, perhaps more than once.
func (s *server) commit(ctx context.Context, t transaction) (resp *clientv3.TxnResponse, doubt bool, err error) {
	doubt, err = s.repeat(ctx, cmp.Or(t.onlyWithin, s.timeout), func(ctx context.Context, c *clientv3.Client) (err error) {
		resp, err = c.Txn(ctx).If(t.when...).Then(t.then...).Else(t.or...).Commit()
		return err
	})
	return resp, doubt, err
}

// read reads keys of one instant, with all that was acknowledged before.
func (s *server) read(ctx context.Context, op, name string, gets ...clientv3.Op) (*clientv3.TxnResponse, error) {
	resp, _, err := s.commit(ctx, transaction{then: gets})
	return resp, s.opError(ctx, op, name, err)
}

// watch tells of each removal of a key, or of what else the options say, until that is over.
func (s *server) watch(ctx context.Context, tell func(), key string, opts ...clientv3.OpOption) {
	client, err := s.connect()
	if err != nil {
		return
	}
	for resp := range client.Watch(clientv3.WithRequireLeader(ctx), key, append(opts, clientv3.WithFilterPut())...) {
		if len(resp.Events) > 0 {
			tell()
		}
	}
}

// got is what the i-th read of a transaction has found.
func got(resp *clientv3.TxnResponse, i int) []*keyValue {
	return resp.Responses[i].GetResponseRange().Kvs
}

// first is the first of that, nil if there is nothing.
func first(resp *clientv3.TxnResponse, i int) *keyValue {
	if kvs := got(resp, i); len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}
