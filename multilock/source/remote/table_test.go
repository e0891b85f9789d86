package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// faulty is a store with events around a transaction, and lost replies.
type faulty struct {
	*Store
	before, after func() // called around the next transaction that writes
	lost          error  // the error of such transactions, though they are carried out
	doubt         bool
}

func newFaulty() *faulty { return &faulty{Store: newStore()} }

func (m *faulty) Apply(ctx context.Context, t remote.Txn) (remote.Applied, error) {
	if len(t.Then) == 0 {
		return m.Store.Apply(ctx, t)
	}
	once(&m.before)
	defer once(&m.after)
	a, _ := m.Store.Apply(ctx, t)
	a.Doubt = m.doubt
	return a, m.lost
}

// once calls a function that is set, once.
func once(do *func()) {
	if happens := *do; happens != nil {
		*do = nil
		happens()
	}
}

// TestRegisterInDoubt: a swap reports exactly the value that it replaced, or ErrUnsure.
func TestRegisterInDoubt(t *testing.T) {
	t.Parallel()
	other := func(t *testing.T, m *faulty, value string) func() {
		return func() {
			lost, doubt := m.lost, m.doubt
			m.lost, m.doubt = nil, false
			r, err := open(t, m).Register("cell")
			require.NoError(t, err)
			_, _, err = r.Swap(t.Context(), []byte(value))
			require.NoError(t, err)
			m.lost, m.doubt = lost, doubt
		}
	}
	restore := func(m *faulty) func() {
		return func() {
			e := m.entries["root/register/night/cell"]
			e.Value = []byte("restored")
			m.entries[e.Key] = e
		}
	}
	for name, c := range map[string]struct {
		set func(*testing.T, *faulty)
		old string
		err error
	}{
		"nobody else":                       {func(*testing.T, *faulty) {}, "first", nil},
		"another one before":                {func(t *testing.T, m *faulty) { m.before = other(t, m, "other") }, "other", nil},
		"another one of the same revision":  {func(_ *testing.T, m *faulty) { m.before = restore(m) }, "restored", nil},
		"a register that was removed":       {func(_ *testing.T, m *faulty) { m.before = func() { clear(m.entries) } }, "", nil},
		"an answer was lost":                {func(_ *testing.T, m *faulty) { m.doubt = true }, "first", nil},
		"an answer was lost, another after": {func(t *testing.T, m *faulty) { m.doubt, m.before = true, other(t, m, "other") }, "", source.ErrUnsure},
		"all answers are lost":              {func(_ *testing.T, m *faulty) { m.doubt, m.lost = true, errors.New("nobody there") }, "", source.ErrUnsure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFaulty()
			other(t, m, "first")()
			r, err := open(t, m).Register("cell")
			require.NoError(t, err)
			_, _, err = r.Peek(t.Context())
			require.NoError(t, err)
			c.set(t, m)
			old, n, err := r.Swap(t.Context(), []byte("mine"))
			require.ErrorIs(t, err, c.err)
			if err == nil {
				require.Equal(t, c.old, string(old))
				value, now, err := r.Peek(t.Context())
				require.NoError(t, err)
				require.Equal(t, []any{"mine", n}, []any{string(value), now})
			}
		})
	}
	m := newFaulty()
	m.lost = errors.New("refused")
	r, err := open(t, m).Register("cell")
	require.NoError(t, err)
	_, _, err = r.Swap(t.Context(), []byte("mine"))
	require.ErrorIs(t, err, m.lost)
	require.NotErrorIs(t, err, source.ErrUnsure)
}

// TestPublish: a group has one manifest, that of the first publisher.
func TestPublish(t *testing.T) {
	m := newFaulty()
	s := open(t, m)
	_, err := s.OpenManifest(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = s.Publish(t.Context(), []byte("sixteen or more."))
	require.ErrorIs(t, err, source.ErrInvalid)
	require.Empty(t, m.entries)
	for _, list := range []string{"ten bytes.", "ten bytes.", "another"} {
		there, err := s.Publish(t.Context(), []byte(list))
		require.NoError(t, err)
		require.Equal(t, "ten bytes.", string(there))
	}
	require.Len(t, m.entries, 5)
	opened, err := s.OpenManifest(t.Context())
	require.NoError(t, err)
	read, err := io.ReadAll(opened)
	require.NoError(t, err)
	require.Equal(t, "ten bytes.", string(read))
	for key, e := range m.entries {
		if strings.HasSuffix(key, "/002") {
			e.Value = []byte("x")
			m.entries[key] = e
		}
	}
	_, err = s.OpenManifest(t.Context())
	require.ErrorContains(t, err, "it is not what was published")
	require.NoError(t, s.Retract(t.Context()))
	require.Empty(t, m.entries)

	m.before = func() { // another host is faster
		_, err := open(t, m).Publish(t.Context(), []byte("first"))
		require.NoError(t, err)
	}
	there, err := s.Publish(t.Context(), []byte("second"))
	require.NoError(t, err)
	require.Equal(t, "first", string(there))
	require.Len(t, m.entries, 3, "parts that nobody needs are removed")
	require.NoError(t, s.Retract(t.Context()))
	m.after = func() { clear(m.entries) } // the manifest is retracted
	_, err = s.Publish(t.Context(), []byte("second"))
	require.ErrorIs(t, err, source.ErrPassing)
	require.ErrorContains(t, err, "it was retracted meanwhile")

	l := &lossy{Store: m.Store, what: late, n: 1, strike: true}
	for _, list := range []string{"old", "new"} {
		_, err = s.Publish(t.Context(), []byte(list))
		require.NoError(t, err)
		if list == "old" {
			require.ErrorIs(t, open(t, l).Retract(t.Context()), errNoAnswer)
			require.NoError(t, s.Retract(t.Context()))
		}
	}
	l.land()
	there, err = s.Publish(t.Context(), []byte("other"))
	require.NoError(t, err)
	require.Equal(t, "new", string(there), "a retraction that arrives late does not remove another list")
}

// TestDays: the age of the history is by the server's clock, and depends on no host's.
func TestDays(t *testing.T) {
	const day = 24 * time.Hour
	m := newFaulty()
	s := open(t, m)
	record := func(name string, by time.Duration) {
		require.NoError(t, s.Record(t.Context(), []source.Event{{Time: time.Now().Add(by), What: source.EventBroke, Name: name}}))
	}
	names := func() (names []string) {
		for e, err := range s.History(t.Context(), time.Time{}) {
			require.NoError(t, err)
			names = append(names, e.Name)
		}
		return names
	}
	record("ahead", 1000*day)
	record("behind", -1000*day)
	m.passed += day
	m.after = func() { record("other", 0) }
	record("mine", 0)
	require.Len(t, m.read(remote.Range{Key: "root/day/night/mark/", Below: true}), 2, "two hosts have begun one day")
	for n := range 91 {
		require.Equal(t, n >= 89, !slices.Contains(names(), "ahead"), n)
		m.passed += day
		record(fmt.Sprint("day ", n), 0)
		record("the same day", 0)
	}
	require.NotContains(t, names(), "behind")
	old, err := s.Expire(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []string{time.Now().UTC().Format(time.DateOnly)}, old)
	require.Equal(t, []string{"the same day"}, names(), "the day that is not over stays")
}

// contend prepares to acquire the lock.
func contend(t *testing.T, store remote.Store) source.Contender {
	t.Helper()
	c, err := open(t, store).Contend(t.Context(), "nightly", source.Claim{TTL: time.Hour, Heartbeat: time.Minute}, source.StalePolicy{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// TestLine: waiters acquire the lock in the order of arrival, whichever asks first, and a contender
// that does not wait comes after all of them. A waiter that gives up is skipped.
func TestLine(t *testing.T) {
	s := newStore()
	lease, err := contend(t, s).Try(t.Context())
	require.NoError(t, err)
	waiters := []source.Contender{contend(t, s), contend(t, s), contend(t, s), contend(t, s)}
	for _, w := range waiters {
		w.Wake()
		_, err := w.Try(t.Context())
		require.ErrorIs(t, err, source.ErrHeld)
	}
	for _, w := range slices.Backward(waiters) { // a waiter that asks again keeps its position
		_, err := w.Try(t.Context())
		require.ErrorIs(t, err, source.ErrHeld)
	}
	require.Len(t, s.waiting, len(waiters))
	const lock = "root/lock/night/nightly"
	var ahead []string
	for ticket, w := range s.waiting {
		require.Contains(t, s.entries, ticket)
		require.Equal(t, s.entries[lock].Created, w.Held)
		ahead = append(ahead, w.Ahead...)
	}
	require.Len(t, ahead, len(waiters)+1)
	require.Contains(t, ahead, lock)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(ahead))), len(ahead), "each waits for another ticket, the first for the lock and its life")
	require.NoError(t, waiters[2].Close())
	waiters = slices.Delete(waiters, 2, 3)
	for len(waiters) > 0 {
		require.NoError(t, lease.Release(t.Context()))
		for _, other := range append([]source.Contender{contend(t, s)}, waiters[1:]...) {
			_, err := other.Try(t.Context())
			require.ErrorIs(t, err, source.ErrHeld)
			seen, err := other.Look(t.Context())
			require.NoError(t, err)
			require.Equal(t, source.StateHeld, seen.State, "another waiter comes first")
		}
		lease, err = waiters[0].Try(t.Context())
		require.NoError(t, err)
		waiters = waiters[1:]
	}
	require.NoError(t, lease.Release(t.Context()))
	require.Empty(t, s.entries)
}

// TestFoundLate: after an unanswered attempt that took effect, the next one finds the lock, and
// confirms it.
func TestFoundLate(t *testing.T) {
	l := &lossy{Store: newStore(), what: lost, strike: true}
	c := contend(t, l)
	_, err := c.Try(t.Context())
	require.ErrorIs(t, err, source.ErrUnsure)
	before := boottime.Now()
	lease, err := c.Try(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, lease.Since().Since(before), time.Duration(0))
	require.Equal(t, int64(1), l.entries["root/lock/night/nightly"].Beats)
	require.NoError(t, lease.Release(t.Context()))
}

// TestReleaseOfABrokenLock: if a release was not answered and the lock is gone, the release
// succeeded, unless the lock was broken in between.
func TestReleaseOfABrokenLock(t *testing.T) {
	l := &lossy{Store: newStore(), what: dropped}
	lease, err := contend(t, l).Try(t.Context())
	require.NoError(t, err)
	l.strike = true
	require.Error(t, lease.Release(t.Context()))
	observer, err := open(t, l.Store).Observe(t.Context(), "nightly", source.StalePolicy{})
	require.NoError(t, err)
	_, err = observer.Look(t.Context())
	require.NoError(t, err)
	require.NoError(t, observer.Force(t.Context()))
	require.ErrorIs(t, lease.Release(t.Context()), source.ErrLost)
}

// FuzzContents: whatever is stored instead of a manifest, no more parts are read than a manifest
// can have.
func FuzzContents(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"v":1,"id":"x","parts":-1}`, `{"v":1,"id":"x","parts":1e9}`, `{"v":1,"id":"x","parts":4}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		m := newFaulty()
		s := open(t, m)
		list := remote.Entry{Key: "root/manifest/night/list", Value: value}
		m.entries[list.Key] = list
		_, err := s.OpenManifest(t.Context())
		require.Error(t, err, "it is not what was published")
		require.LessOrEqual(t, m.revision, int64(1+5))
	})
}
