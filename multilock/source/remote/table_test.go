package remote_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// memory is a store in this process. Its signs of life are counted, and told apart by that alone.
type memory struct {
	mu       sync.Mutex
	entries  map[string]remote.Entry
	revision int64
	waiting  map[string]remote.Wait
	passed   time.Duration // by its clock, since the entries were written

	before, after func() // happens around the next transaction that writes
	lost          error  // what is reported of each of them, though it was carried out
	doubt         bool
}

func newMemory() *memory {
	return &memory{entries: map[string]remote.Entry{}, waiting: map[string]remote.Wait{}}
}

func (m *memory) Apply(_ context.Context, t remote.Txn) (a remote.Applied, err error) {
	a.Since = boottime.Now()
	if len(t.Then) > 0 {
		a.Doubt, err = m.doubt, m.lost
		defer once(&m.after)
		once(&m.before)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revision++
	a.Done = !slices.ContainsFunc(t.If, func(c remote.Cond) bool { return !m.holds(c) })
	writes := t.Then
	if !a.Done {
		writes = t.Else
	}
	for _, w := range writes {
		m.write(w)
	}
	for _, r := range t.Show {
		a.Found = append(a.Found, m.read(r))
	}
	return a, err
}

// once does something that is to happen, once.
func once(do *func()) {
	if happens := *do; happens != nil {
		*do = nil
		happens()
	}
}

func (m *memory) holds(c remote.Cond) bool {
	e, there := m.entries[c.Key]
	switch c.Field {
	case remote.IfAbsent:
		return !there
	case remote.IfExists:
		return there
	case remote.IfCreated:
		return e.Created == c.Number
	case remote.IfChanged:
		return e.Changed == c.Number
	case remote.IfValue:
		return bytes.Equal(e.Value, c.Value)
	case remote.IfSilent:
		return e.Beats == c.Number
	case remote.IfFirst:
		return len(m.read(remote.Range{Key: c.Key, Below: true, Before: c.Number})) == 0
	}
	return false
}

func (m *memory) write(w remote.Write) {
	e, there := m.entries[w.Key]
	switch {
	case w.Beat > 0:
		if e.Created == w.Beat {
			e.Beats++
			m.entries[w.Key] = e
		}
	case w.Value == nil:
		maps.DeleteFunc(m.entries, func(key string, _ remote.Entry) bool { return key == w.Key || w.Below && strings.HasPrefix(key, w.Key) })
		for _, waits := range m.waiting {
			waits.Tell()
		}
	default:
		if !there {
			e = remote.Entry{Key: w.Key, Created: m.revision, Pulse: 1, Age: source.Unknown}
		}
		e.Value, e.Changed, e.Silence = w.Value, m.revision, -m.passed
		e.Version++
		m.entries[w.Key] = e
	}
}

func (m *memory) read(r remote.Range) (found []remote.Entry) {
	for _, e := range m.entries {
		below := r.Below && strings.HasPrefix(e.Key, r.Key) && e.Key >= r.From
		if (e.Key == r.Key || below) && (r.Before == 0 || e.Created < r.Before) {
			e.Silence += m.passed
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b remote.Entry) int {
		switch {
		case r.Oldest:
			return cmp.Compare(a.Created, b.Created)
		case r.Newest:
			return cmp.Compare(b.Created, a.Created)
		}
		return strings.Compare(a.Key, b.Key)
	})
	if r.Limit > 0 {
		found = found[:min(len(found), r.Limit)]
	}
	return found
}

// memoryFeed reads all that is there anew.
type memoryFeed struct {
	*memory
	below, from string
	at          int64
}

func (m *memory) Feed(below, from string) remote.Feed { return &memoryFeed{m, below, from, 0} }

func (f *memoryFeed) Next(context.Context) (news []remote.Entry, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.read(remote.Range{Key: f.below, Below: true, From: f.from}) {
		if e.Created > f.at {
			news = append(news, e)
		}
	}
	f.at = f.revision
	return news, nil
}

func (f *memoryFeed) Close() error { return nil }

func (m *memory) Removals(string, bool) (news <-chan struct{}, stop func()) { return nil, func() {} }
func (m *memory) Stop(int64)                                                {}

func (m *memory) OpError(ctx context.Context, op, name string, err error) error {
	return remote.OpError(ctx, source.OpError{Source: "memory", Op: op, Name: name, Err: err})
}

func (m *memory) Pulse(context.Context, time.Duration) remote.Pulse {
	return &remote.Beats{Store: m, Wait: func(w remote.Wait) (stop func()) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.waiting[w.Ticket] = w
		w.Tell() // something may have been removed before
		return func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.waiting, w.Ticket)
		}
	}}
}

// tableSource is a source on such a store.
type tableSource struct{ remote.Table }

func (s *tableSource) Close() error { return nil }

func newTable(t testing.TB, m *memory) *tableSource {
	t.Helper()
	member, err := remote.Options[string]{Group: "night"}.Join("memory")
	require.NoError(t, err)
	return &tableSource{remote.NewTable(member, m, "root/", remote.Limits{Value: 3, Parts: 4, Unheard: time.Minute, Server: "memory"})}
}

// TestTable has a source on a store pass what each has to pass.
func TestTable(t *testing.T) {
	locktest.Run(t, locktest.Fixture{
		Fences: true, Marks: true, Deaths: true, Refused: []string{"a/b", "nul\x00byte", "\xff\xfe not utf-8"},
		Place: func(testing.TB) func() source.Source {
			m := newMemory()
			return func() source.Source {
				s := newTable(t, m)
				return s
			}
		},
	})
	m := newMemory()
	locktest.RunRegister(t, func(t testing.TB, name string) source.Register {
		r, err := newTable(t, m).Register(name)
		require.NoError(t, err)
		return r
	})
}

// TestRegisterInDoubt: what was replaced is told exactly, and who cannot know it says so.
func TestRegisterInDoubt(t *testing.T) {
	t.Parallel()
	other := func(t *testing.T, m *memory, value string) func() {
		return func() {
			lost, doubt := m.lost, m.doubt
			m.lost, m.doubt = nil, false
			r, err := newTable(t, m).Register("cell")
			require.NoError(t, err)
			_, _, err = r.Swap(t.Context(), []byte(value))
			require.NoError(t, err)
			m.lost, m.doubt = lost, doubt
		}
	}
	restore := func(m *memory) func() {
		return func() {
			e := m.entries["root/register/night/cell"]
			e.Value = []byte("restored")
			m.entries[e.Key] = e
		}
	}
	for name, c := range map[string]struct {
		set func(*testing.T, *memory)
		old string
		err error
	}{
		"nobody else":                       {func(*testing.T, *memory) {}, "first", nil},
		"another one before":                {func(t *testing.T, m *memory) { m.before = other(t, m, "other") }, "other", nil},
		"another one of the same revision":  {func(_ *testing.T, m *memory) { m.before = restore(m) }, "restored", nil},
		"a register that was removed":       {func(_ *testing.T, m *memory) { m.before = func() { clear(m.entries) } }, "", nil},
		"an answer was lost":                {func(_ *testing.T, m *memory) { m.doubt = true }, "first", nil},
		"an answer was lost, another after": {func(t *testing.T, m *memory) { m.doubt, m.before = true, other(t, m, "other") }, "", source.ErrUnsure},
		"all answers are lost":              {func(_ *testing.T, m *memory) { m.doubt, m.lost = true, errors.New("nobody there") }, "", source.ErrUnsure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMemory()
			other(t, m, "first")()
			r, err := newTable(t, m).Register("cell")
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
	m := newMemory()
	m.lost = errors.New("refused")
	r, err := newTable(t, m).Register("cell")
	require.NoError(t, err)
	_, _, err = r.Swap(t.Context(), []byte("mine"))
	require.ErrorIs(t, err, m.lost)
	require.NotErrorIs(t, err, source.ErrUnsure)
}

// TestPublish: a group has one manifest, that of the first who has published, whenever that was.
func TestPublish(t *testing.T) {
	m := newMemory()
	s := newTable(t, m)
	_, err := s.OpenManifest(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = s.Publish(t.Context(), []byte("thirteen byte"))
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
		_, err := newTable(t, m).Publish(t.Context(), []byte("first"))
		require.NoError(t, err)
	}
	there, err := s.Publish(t.Context(), []byte("second"))
	require.NoError(t, err)
	require.Equal(t, "first", string(there))
	require.Len(t, m.entries, 3, "parts that nobody needs are removed")
	require.NoError(t, s.Retract(t.Context()))
	m.after = func() { clear(m.entries) } // it is retracted
	_, err = s.Publish(t.Context(), []byte("second"))
	require.ErrorIs(t, err, source.ErrPassing)
	require.ErrorContains(t, err, "it was retracted meanwhile")
}

// TestDays: how old the history is shows the server's clock, and no host's.
func TestDays(t *testing.T) {
	const day = 24 * time.Hour
	m := newMemory()
	s := newTable(t, m)
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
	for n := range 92 {
		require.Equal(t, n >= 90, !slices.Contains(names(), "ahead"), n)
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

// FuzzContents: whatever is where a manifest should be, no more parts are read than a manifest has.
func FuzzContents(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"v":1,"id":"x","parts":-1}`, `{"v":1,"id":"x","parts":1e9}`, `{"v":1,"id":"x","parts":4}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		m := newMemory()
		s := newTable(t, m)
		list := remote.Entry{Key: "root/manifest/night/list", Value: value}
		m.entries[list.Key] = list
		_, err := s.OpenManifest(t.Context())
		require.Error(t, err, "it is not what was published")
		require.LessOrEqual(t, m.revision, int64(1+4))
	})
}
