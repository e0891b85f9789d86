package fslock_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// watchdog ends what hangs. Nothing that works comes near it, on any machine.
const watchdog = time.Minute

// long is a TTL that does not end during a test.
const long = time.Hour

// fresh is an empty base directory that every user may use.
func fresh(t testing.TB) string {
	t.Helper()
	base, err := os.MkdirTemp("", "multilock-scene-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	require.NoError(t, os.Chmod(base, 0o777))
	return base
}

func open(t testing.TB, opt fslock.Options) *fslock.Source {
	t.Helper()
	src, err := fslock.Open(opt)
	require.NoError(t, err)
	t.Cleanup(func() { _ = src.Close() })
	return src
}

func self(t testing.TB) process.Identity {
	t.Helper()
	id, err := process.Self()
	require.NoError(t, err)
	return id
}

// elsewhere is this process as it would be on another host: it can judge nobody
// here by a pid.
func elsewhere(t testing.TB) process.Identity {
	id := self(t)
	id.Host, id.Machine, id.Boot = "elsewhere", "00000000feedf00d", "00000000-0000-4000-8000-00000000b007"
	return id
}

// views are the two ways to see a holder of this host: as a neighbour, and from
// a host that has nothing to go by but the holder's silence.
func views(t *testing.T) map[string]process.Identity {
	return map[string]process.Identity{"same host": self(t), "silence only": elsewhere(t)}
}

// within is a context that ends with the watchdog.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	t.Cleanup(cancel)
	return ctx
}

func acquire(t testing.TB, src *fslock.Source, name string, opt multilock.Options) *multilock.Lock {
	t.Helper()
	lock, err := multilock.Acquire(within(t), src, name, opt)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lock.Release(context.Background()) })
	return lock
}

func observe(t testing.TB, src *fslock.Source, name string, patience source.Patience) source.Observer {
	t.Helper()
	o, err := src.Observe(t.Context(), name, patience)
	require.NoError(t, err)
	t.Cleanup(func() { _ = o.Close() })
	return o
}

func look(t testing.TB, o source.Observer) source.Sighting {
	t.Helper()
	seen, err := o.Look(t.Context())
	require.NoError(t, err)
	return seen
}

// lookUntil looks as often as a contender would, until the state is reached.
// Every look before it goes to each, if that is not nil.
func lookUntil(t testing.TB, o source.Observer, want source.State, each func(source.Sighting)) source.Sighting {
	t.Helper()
	for end := time.Now().Add(watchdog); time.Now().Before(end); {
		seen := look(t, o)
		if seen.State == want {
			return seen
		}
		if each != nil {
			each(seen)
		}
		time.Sleep(min(seen.Next, time.Second))
	}
	require.FailNow(t, "the lock never was "+want.String())
	return source.Sighting{}
}

// plant takes the lock as somebody else: with any claim, and without anybody
// who would renew it.
func plant(t testing.TB, src *fslock.Source, name string, claim source.Claim) source.Lease {
	t.Helper()
	c, err := src.Contend(t.Context(), name, claim, source.Patience{})
	require.NoError(t, err)
	lease, err := c.Try(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	t.Cleanup(func() { _ = lease.Close() })
	return lease
}

func claim(holder process.Identity, ttl, heartbeat time.Duration) source.Claim {
	return source.Claim{Holder: source.Holder{Identity: holder}, TTL: ttl, Heartbeat: heartbeat}
}

// requireBroken says that the lock was broken exactly once, and on what evidence.
func requireBroken(t testing.TB, src *fslock.Source, name, evidence string) {
	t.Helper()
	events, err := src.History(t.Context(), time.Time{})
	require.NoError(t, err)
	var why []string
	for _, e := range events {
		if e.What == source.EventBroke && e.Name == name {
			why = append(why, e.Why)
		}
	}
	require.Len(t, why, 1)
	require.Contains(t, why[0], evidence)
}
