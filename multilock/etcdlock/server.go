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

// longestTry is for a member that stands still: it is left for another one.
const longestTry = 3 * time.Second

// repeat sends what may be carried out more than once, until it is answered: see remote.Repeat. A
// member that has no leader says so at once, instead of waiting for one.
func (s *server) repeat(ctx context.Context, limit time.Duration, ask func(context.Context, *clientv3.Client) error) (doubt bool, err error) {
	return remote.Repeat(clientv3.WithRequireLeader(ctx), min(limit, s.timeout), longestTry, func(ctx context.Context) (remote.Tried, error) {
		client, err := s.connect()
		ctx, out := watched(ctx)
		if err == nil {
			err = ask(ctx, client)
		}
		sent := out.Load() // how often it has left this host
		return remote.Tried{Doubt: sent > 1 || sent == 1 && inDoubt(err), Again: inDoubt(err), Told: told(err), Nobody: s.unreachable(err)}, err
	})
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

// get reads one key, nil if there is none.
func (s *server) get(ctx context.Context, op, name, key string) (*keyValue, error) {
	resp, err := s.read(ctx, op, name, clientv3.OpGet(key))
	if err != nil {
		return nil, err
	}
	return first(resp, 0), nil
}

// valueOf is what is there, nil for nothing.
func valueOf(kv *keyValue) []byte {
	if kv == nil {
		return nil
	}
	return kv.Value
}

// watch tells what happens to a key, or to what else the options say, until that is over.
func (s *server) watch(ctx context.Context, tell func([]*clientv3.Event), key string, opts ...clientv3.OpOption) {
	client, err := s.connect()
	if err != nil {
		return
	}
	for resp := range client.Watch(clientv3.WithRequireLeader(ctx), key, opts...) {
		if len(resp.Events) > 0 {
			tell(resp.Events)
		}
	}
}

// removals tells of removals alone.
func (s *server) removals(ctx context.Context, tell func(), key string, opts ...clientv3.OpOption) {
	s.watch(ctx, func([]*clientv3.Event) { tell() }, key, append(opts, clientv3.WithFilterPut())...)
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
