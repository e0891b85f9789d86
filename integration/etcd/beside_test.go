package etcd_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/multilock"
)

// TestBesideConcurrency acquires and releases a lock repeatedly, with multilock and with the mutex of
// etcd's own client in turns. Both cost the same requests, and multilock takes little more time.
func TestBesideConcurrency(t *testing.T) {
	c := etcdlab.Start(t, 3)
	proxy := etcdlab.NewProxy(t, c.Members[0].Client, 0)
	ctx := within(t)
	src := open(t, proxy.Address, prefix(), "")
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{proxy.Address}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer client.Close()
	session, err := concurrency.NewSession(client)
	require.NoError(t, err)
	defer session.Close()
	mutex := concurrency.NewMutex(session, prefix())
	ways := map[string]func() error{
		"multilock": func() error {
			return multilock.Do(ctx, src, "nightly", multilock.Options{}, func(context.Context) error { return nil })
		},
		"etcd's mutex": func() error {
			if err := mutex.Lock(ctx); err != nil {
				return err
			}
			return mutex.Unlock(ctx)
		},
	}
	const cycles = 50
	requests, took := map[string]int{}, map[string]time.Duration{}
	for round := range 5 {
		for name, cycle := range ways {
			before, start := proxy.Counts(), time.Now()
			for range cycles {
				require.NoError(t, cycle(), name)
			}
			if round == 0 {
				continue // connects, and requests a lease
			}
			took[name] += time.Since(start) / (4 * cycles)
			spent := proxy.Counts().Since(before)
			delete(spent, "LeaseKeepAlive")
			requests[name] += spent.All()
		}
	}
	require.Equal(t, map[string]int{"multilock": 4 * 2 * cycles, "etcd's mutex": 4 * 2 * cycles}, requests)
	t.Logf("a cycle takes %s, that of etcd's own mutex %s", took["multilock"], took["etcd's mutex"])
}
