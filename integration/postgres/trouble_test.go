package postgres_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// TestRestart: while the server is killed and restarted, a holder keeps its lock, and a waiter keeps
// waiting and keeps its place in the queue.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := pglab.Start(t, pglab.Options{})
	place := schema()
	src := open(t, s.Address, place, "")
	lock := hold(t, src, "nightly", long)
	waiting := impatient(t, s, place)
	_, done := wait(t, waiting, "nightly")
	waits := func() bool { return s.Value("SELECT count(*) FROM "+place+".entry WHERE key LIKE 'wait/%'") == "1" }
	require.Eventually(t, waits, watchdog, 10*time.Millisecond)
	s.Kill()
	_, err := multilock.TryAcquire(within(t), waiting, "other", multilock.Options{})
	require.ErrorIs(t, err, source.ErrPassing)
	s.Begin()
	require.True(t, waits())
	require.NoError(t, lock.Verify(within(t)))
	require.NoError(t, lock.Release(within(t)))
	require.NoError(t, <-done)
}

// TestDeadFirst: a contender that finds a free lock with a dead waiter first in the queue acquires the
// lock when that waiter's time is over. No release will notify it, because there is no holder.
func TestDeadFirst(t *testing.T) {
	t.Parallel()
	s := pglab.Start(t, pglab.Options{})
	for name, address := range map[string]string{"direct": s.Address, "behind a pooler": s.Pooler(t, 2)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := schema()
			src := open(t, address, place, "")
			lock := hold(t, src, "nightly", long)
			s.SQL("INSERT INTO " + place + ".entry (key, value, created, changed, channel, listener, seen) VALUES ('wait//nightly/dead', '{}', 1, 1, 'nobody', 0, clock_timestamp() - interval '9 seconds')")
			require.NoError(t, lock.Release(within(t)))
			next, err := multilock.Acquire(within(t), src, "nightly", multilock.Options{TTL: time.Minute})
			require.NoError(t, err)
			require.NoError(t, next.Release(within(t)))
		})
	}
}

// TestServerClock: when the server's clock is set back or forward, a holder that sends heartbeats keeps
// its lock, and the lock of a holder that sends none can be acquired.
func TestServerClock(t *testing.T) {
	t.Parallel()
	s := pglab.Start(t, pglab.Options{})
	for name, step := range map[string]string{"set back": "+ interval '1 hour'", "set forward": "- interval '1 hour'"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := schema()
			const ttl = 5 * time.Second
			holder := open(t, s.Address, place, "")
			lock, err := multilock.TryAcquire(within(t), holder, "nightly", multilock.Options{TTL: ttl})
			require.NoError(t, err)
			s.SQL("UPDATE " + place + ".entry SET seen = seen " + step + ", at = at " + step)
			ctx, cancel := context.WithTimeout(within(t), 3*ttl)
			defer cancel()
			_, err = multilock.Acquire(ctx, open(t, s.Address, place, ""), "nightly", multilock.Options{})
			require.ErrorIs(t, err, source.ErrHeld)
			require.NoError(t, lock.Release(within(t)))

			contender, err := holder.Contend(within(t), "weekly", claim(ttl), source.StalePolicy{})
			require.NoError(t, err)
			silent, err := contender.Try(within(t))
			require.NoError(t, err)
			require.NoError(t, contender.Close())
			s.SQL("UPDATE " + place + ".entry SET seen = seen " + step)
			next, err := multilock.Acquire(within(t), open(t, s.Address, place, ""), "weekly", multilock.Options{})
			require.NoError(t, err)
			require.ErrorIs(t, silent.Renew(within(t)), source.ErrLost)
			require.NoError(t, next.Release(within(t)))
		})
	}
}

// TestLateAttempt: an attempt that reaches the server long after its client gave up acquires no lock
// and gets no place in the queue.
func TestLateAttempt(t *testing.T) {
	t.Parallel()
	s := pglab.Start(t, pglab.Options{})
	proxy, place := pglab.NewProxy(t, s.Address, 0), schema()
	src := open(t, proxy.Address, place, "")
	lock := hold(t, src, "nightly", long)
	proxy.Inject(func(int, string) engine.Outcome { return engine.Zombie })
	ctx, cancel := context.WithTimeout(within(t), 2*time.Second)
	defer cancel()
	_, err := multilock.TryAcquire(ctx, src, "weekly", multilock.Options{})
	require.Error(t, err)
	waiting, err := src.Contend(within(t), "nightly", claim(long), source.StalePolicy{})
	require.NoError(t, err)
	waiting.Wake()
	ctx, cancel = context.WithTimeout(within(t), 2*time.Second)
	defer cancel()
	_, err = waiting.Try(ctx)
	require.Error(t, err)
	require.NoError(t, waiting.Close())
	proxy.Inject(nil)
	require.NoError(t, lock.Verify(within(t)))
	time.Sleep(6 * time.Second)
	proxy.Land()
	require.Equal(t, "lock//nightly", s.Value("SELECT string_agg(key, ' ') FROM "+place+".entry WHERE key LIKE 'lock/%'"))
	require.Equal(t, "0", s.Value("SELECT count(*) FROM "+place+".entry WHERE key LIKE 'wait/%'"))
	require.NoError(t, lock.Release(within(t)))
}

// TestSchemas: clients that start at the same time all find the schema, whether they only read or not.
// A schema of another version is rejected.
func TestSchemas(t *testing.T) {
	t.Parallel()
	s := pglab.Start(t, pglab.Options{})
	place := schema()
	done := make(chan error)
	for i := range 20 {
		src := open(t, s.Address, place, "")
		go func() {
			var err error
			if i%2 == 0 {
				_, err = src.Names(within(t))
			} else {
				err = multilock.Do(within(t), src, "first", multilock.Options{}, func(context.Context) error { return nil })
			}
			done <- err
		}()
	}
	for range 20 {
		require.NoError(t, <-done)
	}
	s.SQL("INSERT INTO " + place + ".meta VALUES (3)")
	_, err := open(t, s.Address, place, "").Names(within(t))
	require.ErrorIs(t, err, source.ErrInvalid)
	require.ErrorContains(t, err, "has version 3, and this multilock knows 2")
	s.SQL("DELETE FROM " + place + ".meta; INSERT INTO " + place + ".meta VALUES (1)")
	_, err = open(t, s.Address, place, "").Names(within(t))
	require.ErrorIs(t, err, source.ErrInvalid)
	require.ErrorContains(t, err, "is that of an older multilock (version 1")
	s.SQL("CREATE DATABASE latin ENCODING LATIN1 TEMPLATE template0")
	_, err = multilock.TryAcquire(within(t), openURL(t, "postgres://ada@"+s.Address+"/latin"), "first", multilock.Options{})
	require.ErrorContains(t, err, "use one in UTF8")
}

// TestPooler: everything works behind PgBouncer in transaction mode; waiters ask once a second.
func TestPooler(t *testing.T) {
	t.Parallel()
	s := pglab.Start(t, pglab.Options{})
	pooler, place := s.Pooler(t, 2), schema()
	src := open(t, pooler, place, "")
	lock := hold(t, src, "nightly", long)
	_, done := wait(t, src, "nightly")
	require.Eventually(t, func() bool { return s.Value("SELECT count(*) FROM "+place+".entry WHERE key LIKE 'wait/%'") == "1" }, watchdog, 10*time.Millisecond)
	require.NoError(t, lock.Verify(within(t)))
	require.NoError(t, lock.Release(within(t)))
	require.NoError(t, <-done)
	for _, f := range src.Examine(within(t)) {
		if f.Subject == "waiting" {
			require.Contains(t, f.Text, "a pooler is in between")
			require.Equal(t, source.SeverityWarning, f.Severity)
		}
	}
	require.Equal(t, "0", s.Value("SELECT count(*) FROM pg_prepared_statements"))
}

// TestForeignRow: a row that multilock has not written is a lock held by an unknown process, which only
// force clears.
func TestForeignRow(t *testing.T) {
	t.Parallel()
	s := pglab.Start(t, pglab.Options{})
	place := schema()
	src := open(t, s.Address, place, "")
	makeSchema(t, src)
	s.SQL("INSERT INTO " + place + ".entry (key, value, created, changed, seen) VALUES ('lock//nightly', 'mine', 1, 1, now() - interval '1 year')")
	_, err := multilock.TryAcquire(within(t), src, "nightly", multilock.Options{})
	require.ErrorIs(t, err, source.ErrHeld)
	require.ErrorContains(t, err, "its record is not one of multilock")
	_, err = multilock.Break(within(t), src, "nightly", multilock.BreakOptions{})
	require.ErrorIs(t, err, source.ErrHeld)
	_, err = multilock.Break(within(t), src, "nightly", multilock.BreakOptions{Alive: true})
	require.NoError(t, err)
	require.NoError(t, hold(t, src, "nightly", long).Release(within(t)))
}

// atOnce is the time allowed, on a busy machine, to report a permanent error.
const atOnce = 30 * time.Second

// use acquires and releases a lock at this URL, as a run does.
func use(t *testing.T, url string) error {
	t.Helper()
	src := openURL(t, url)
	ctx, cancel := context.WithTimeout(within(t), atOnce)
	defer cancel()
	return multilock.Do(ctx, src, "nightly", multilock.Options{}, func(context.Context) error { return nil })
}

// TestCertificates: mutual TLS works. A mismatch is reported at once, with the setting to add, and
// Acquire does not retry.
func TestCertificates(t *testing.T) {
	t.Parallel()
	certs, others := etcdlab.NewCerts(t), etcdlab.NewCerts(t)
	s := pglab.Start(t, pglab.Options{Access: "hostssl all ada 127.0.0.1/32 cert\nhost all ada 127.0.0.0/8 trust\n"})
	for _, file := range []string{"ca.pem", "server.pem", "server.key"} {
		text, err := os.ReadFile(certs.File(file))
		require.NoError(t, err)
		s.Write(file, string(text))
	}
	s.Kill()
	s.Set(map[string]string{"listen_addresses": "127.0.0.1," + host(t, s.Address), "ssl": "on", "ssl_ca_file": s.File("ca.pem"), "ssl_cert_file": s.File("server.pem"), "ssl_key_file": s.File("server.key")})
	s.Begin()
	_, port, err := net.SplitHostPort(s.Address)
	require.NoError(t, err)
	at := func(c *etcdlab.Certs, mode string, files map[string]string) string {
		query := url.Values{"sslmode": {mode}}
		for key, file := range files {
			query.Set(key, c.File(file))
		}
		return "postgres://ada@127.0.0.1:" + port + "/work?" + query.Encode()
	}
	right := map[string]string{"sslrootcert": "ca.pem", "sslcert": "client.pem", "sslkey": "client.key"}
	require.NoError(t, use(t, at(certs, "verify-full", right)))
	for name, c := range map[string]struct{ url, want string }{
		"another authority": {at(others, "verify-full", right), "sslrootcert=FILE"},
		"no certificate":    {at(certs, "verify-full", map[string]string{"sslrootcert": "ca.pem"}), "the server does not accept this kind of connection"},
	} {
		t.Run(name, func(t *testing.T) {
			err := use(t, c.url)
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, source.ErrPassing)
			require.NotErrorIs(t, err, source.ErrUnsure)
		})
	}
}

func host(t *testing.T, address string) string {
	t.Helper()
	host, _, err := net.SplitHostPort(address)
	require.NoError(t, err)
	return host
}
