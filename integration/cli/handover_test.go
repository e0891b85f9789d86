package cli_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/etcdlock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/mongolock"
	"github.com/multilock/go/multilock/pglock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

var measured = flag.Bool("measure", false, "hand-overs: as many as a measurement needs, for several TTLs")

// way is a way to lock: with multilock at a place, or with another program. Each call of open opens it
// as another process.
type way struct {
	open func(t *testing.T, ttl time.Duration) party
	env  string // for commands that use the place, "" if commands are not measured
}

// party is one of two contenders.
type party struct {
	acquire func(context.Context) (release func() error, err error)
	// vanish acquires the lock and then never sends another heartbeat.
	vanish func(context.Context) error
}

// TestHandOver measures how long a handover takes: after a release, after the holder was killed on the
// same host, and after a holder on another host has stopped sending heartbeats. scripts/bench-waiting
// runs enough rounds for a measurement; otherwise the test only shows that handovers work.
func TestHandOver(t *testing.T) {
	for name, open := range ways() {
		t.Run(name, func(t *testing.T) {
			if !*measured {
				t.Parallel()
			}
			w := open(t)
			rounds, ttls := 2, []time.Duration{2 * time.Second}
			if *measured {
				rounds, ttls = 50, []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}
			}
			tell(t, name, "released", w.released(t, rounds))
			if w.env != "" {
				tell(t, name, "killed on this host", killed(t, w.env, max(rounds/5, 1)))
			}
			if *measured {
				t.Parallel() // from here on it only waits
			}
			for _, ttl := range ttls {
				if p := w.open(t, ttl); p.vanish != nil {
					tell(t, name, fmt.Sprintf("silent, TTL %s", ttl), w.silent(t, ttl, max(rounds/10, 1)))
				}
			}
		})
	}
}

func tell(t *testing.T, name, what string, times []time.Duration) {
	t.Helper()
	slices.Sort(times)
	at := func(part int) string {
		return strconv.FormatFloat(float64(times[(len(times)-1)*part/100].Microseconds())/1000, 'f', 1, 64)
	}
	t.Logf("%-34s %-20s median %9s ms, 90 %% %9s ms, of %d", name, what, at(50), at(90), len(times))
}

// released measures the time from just before a release until a waiter, which has waited for a random
// time, has the lock.
func (w way) released(t *testing.T, rounds int) (times []time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*watchdog)
	defer cancel()
	holder, waiter := w.open(t, time.Minute), w.open(t, time.Minute)
	release, err := holder.acquire(ctx)
	require.NoError(t, err)
	for range rounds {
		has := make(chan time.Time, 1)
		var next func() error
		go func() {
			var err error
			next, err = waiter.acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			has <- time.Now()
		}()
		time.Sleep(500*time.Millisecond + rand.N(time.Second)) //nolint:gosec // no secret
		start := time.Now()
		require.NoError(t, release())
		times = append(times, (<-has).Sub(start))
		require.False(t, t.Failed())
		release, holder, waiter = next, waiter, holder
	}
	require.NoError(t, release())
	return times
}

// silent measures the time since the last heartbeat of a holder on another host.
func (w way) silent(t *testing.T, ttl time.Duration, rounds int) (times []time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*watchdog)
	defer cancel()
	for range rounds {
		require.NoError(t, w.open(t, ttl).vanish(ctx))
		start := time.Now()
		release, err := w.open(t, ttl).acquire(ctx)
		require.NoError(t, err)
		times = append(times, time.Since(start))
		require.NoError(t, release())
	}
	return times
}

// killed measures the time from the death of a run until the next job has begun.
func killed(t *testing.T, env string, rounds int) (times []time.Duration) {
	t.Helper()
	s := newStation(t, env)
	for range rounds {
		holder := s.hold("-n", "killed")
		waiter := s.begin(s.command("run", "-q", "-n", "killed", "--wait", "1m", "--", "date", "+%s%N"))
		time.Sleep(500*time.Millisecond + rand.N(time.Second)) //nolint:gosec // no secret
		start := time.Now()
		require.NoError(t, holder.Cmd.Process.Kill())
		got := waiter.end()
		require.Zero(t, got.code, got.stderr)
		began, err := strconv.ParseInt(strings.TrimSpace(got.stdout), 10, 64)
		require.NoError(t, err)
		times = append(times, time.Unix(0, began).Sub(start))
		holder.wait()
	}
	return times
}

// elsewhere returns the identity of a process on another host.
func elsewhere() process.Identity {
	return process.Identity{Host: "elsewhere", Boot: "another", Namespace: "pid:[1]", PID: 4711, Start: 1}
}

// ours returns the way of a multilock source; opened opens the source with a given identity.
func ours(env string, opened func(t *testing.T, self process.Identity) (multilock.Source, error)) way {
	return way{env: env, open: func(t *testing.T, ttl time.Duration) party {
		open := func(self process.Identity) multilock.Source {
			src, err := opened(t, self)
			require.NoError(t, err)
			if closer, ok := src.(interface{ Close() error }); ok {
				t.Cleanup(func() { _ = closer.Close() })
			}
			return src
		}
		src := open(process.Identity{})
		return party{
			acquire: func(ctx context.Context) (func() error, error) {
				lock, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{TTL: ttl})
				if err != nil {
					return nil, err
				}
				return func() error { return lock.Release(context.Background()) }, nil
			},
			vanish: func(ctx context.Context) error {
				contender, err := open(elsewhere()).Contend(ctx, "nightly", source.Claim{TTL: ttl, Heartbeat: ttl / 10}, source.StalePolicy{})
				if err != nil {
					return err
				}
				_, err = contender.Try(ctx)
				return err
			},
		}
	}}
}

func ways() map[string]func(*testing.T) way {
	return map[string]func(*testing.T) way{
		"directory": func(t *testing.T) way { return inDirectory(t.TempDir(), true) },
		"directory on tmpfs": func(t *testing.T) way {
			dir, err := os.MkdirTemp("/dev/shm", "multilock-")
			require.NoError(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			return inDirectory(dir, true)
		},
		"directory, asked as on NFS": func(t *testing.T) way { return inDirectory(t.TempDir(), false) },
		"MongoDB (FerretDB)": func(t *testing.T) way {
			url := mongoURL(newMongo(t), "locks")
			return ours("MULTILOCK_SOURCE="+url, func(_ *testing.T, self process.Identity) (multilock.Source, error) {
				return mongolock.Open(mongolock.Options{Place: mongolock.Place{URL: url}, Self: self})
			})
		},
		"etcd, 3 members": func(t *testing.T) way {
			url := etcdlab.Start(t, 3).URL("locks")
			return ours("MULTILOCK_SOURCE="+url, func(_ *testing.T, self process.Identity) (multilock.Source, error) {
				return etcdlock.Open(etcdlock.Options{Place: etcdlock.Place{URL: url}, Self: self})
			})
		},
		"PostgreSQL": func(t *testing.T) way {
			url := pglab.Start(t, pglab.Options{}).URL("schema=locks")
			return ours("MULTILOCK_SOURCE="+url, func(_ *testing.T, self process.Identity) (multilock.Source, error) {
				return pglock.Open(pglock.Options{Place: pglock.Place{URL: url}, Self: self})
			})
		},
		"the mutex of etcd's own client": func(t *testing.T) way {
			hosts := etcdlab.Start(t, 3).Hosts()
			return way{open: func(t *testing.T, ttl time.Duration) party { return ofConcurrency(t, hosts, ttl) }}
		},
		"pg_advisory_lock": func(t *testing.T) way {
			url := pglab.Start(t, pglab.Options{}).URL("")
			return way{open: func(t *testing.T, _ time.Duration) party { return ofAdvisoryLocks(t, url) }}
		},
	}
}

func inDirectory(dir string, told bool) way {
	env := ""
	if told {
		env = "MULTILOCK_SOURCE=file:" + dir
	}
	return ours(env, func(_ *testing.T, self process.Identity) (multilock.Source, error) {
		src, err := fslock.Open(fslock.Options{Base: dir, Self: self})
		if err != nil || told {
			return src, err
		}
		src.Turns().Prompt = false
		return untold{src}, nil
	})
}

// untold is a directory without notifications of releases, as on a network filesystem.
type untold struct{ *fslock.Source }

func (u untold) Contend(ctx context.Context, name string, claim source.Claim, policy source.StalePolicy) (source.Contender, error) {
	c, err := u.Source.Contend(ctx, name, claim, policy)
	return unwoken{c}, err
}

type unwoken struct{ source.Contender }

func (unwoken) Wake() <-chan struct{} { return nil }

func ofConcurrency(t *testing.T, hosts string, ttl time.Duration) party {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(hosts, ","), Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(ttl.Seconds())))
	require.NoError(t, err)
	mutex := concurrency.NewMutex(session, "mutex")
	return party{
		acquire: func(ctx context.Context) (func() error, error) {
			return func() error { return mutex.Unlock(context.Background()) }, mutex.Lock(ctx)
		},
		vanish: func(ctx context.Context) error {
			defer session.Orphan()
			return mutex.Lock(ctx)
		},
	}
}

func ofAdvisoryLocks(t *testing.T, url string) party {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	ask := func(ctx context.Context, text string) error {
		return conn.ExecParams(ctx, text, nil, nil, nil, nil).Read().Err
	}
	return party{acquire: func(ctx context.Context) (func() error, error) {
		release := func() error { return ask(context.Background(), "SELECT pg_advisory_unlock(4711)") }
		return release, ask(ctx, "SELECT pg_advisory_lock(4711)")
	}}
}
