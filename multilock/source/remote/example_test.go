package remote_test

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
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

// The example of docs/internals/sources.md: a whole source, whose server is a map in this process.

// Store is the server.
type Store struct {
	mu       sync.Mutex
	entries  map[string]remote.Entry
	revision int64                  // of the last transaction
	waiting  map[string]remote.Wait // by ticket
	passed   time.Duration          // simulated time, for tests
}

func newStore() *Store {
	return &Store{entries: map[string]remote.Entry{}, waiting: map[string]remote.Wait{}}
}

// Source has the locks of a group.
type Source struct{ remote.Table }

var _ remote.Abilities = (*Source)(nil)

// Open returns the source. A list has up to 5 parts of 3 bytes, so that tests use more than one.
func Open(store remote.Store) (*Source, error) {
	member, err := remote.Options[string]{Group: "night"}.Join("memory")
	if err != nil {
		return nil, err
	}
	limits := remote.Limits{Value: 3, Parts: 5, Unheard: time.Minute, Server: "memory"}
	return &Source{remote.NewTable(member, store, "root/", limits)}, nil
}

// Apply implements remote.Store.
func (s *Store) Apply(_ context.Context, t remote.Txn) (a remote.Applied, err error) {
	a.Since = boottime.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	writes := t.Then
	if a.Done = !slices.ContainsFunc(t.If, s.fails); !a.Done {
		writes = t.Else
	}
	for _, w := range writes {
		s.write(w)
	}
	for _, r := range t.Show {
		a.Found = append(a.Found, s.read(r))
	}
	return a, nil
}

// fails reports whether a condition does not hold.
func (s *Store) fails(c remote.Cond) bool {
	e, there := s.entries[c.Key]
	switch c.Field {
	case remote.IfAbsent:
		return there
	case remote.IfExists:
		return !there
	case remote.IfCreated:
		return e.Created != c.Number
	case remote.IfChanged:
		return e.Changed != c.Number
	case remote.IfValue:
		return !bytes.Equal(e.Value, c.Value)
	case remote.IfSilent:
		return e.Beats != c.Number
	}
	return len(s.read(remote.Range{Key: c.Key, Below: true, Before: c.Number})) > 0 // IfFirst
}

func (s *Store) write(w remote.Write) {
	e, there := s.entries[w.Key]
	switch {
	case w.Beat > 0:
		if e.Created == w.Beat {
			e.Beats++
			s.entries[w.Key] = e
		}
	case w.Value == nil:
		maps.DeleteFunc(s.entries, func(key string, _ remote.Entry) bool { return key == w.Key || w.Below && strings.HasPrefix(key, w.Key) })
		for _, waits := range s.waiting {
			waits.Tell()
		}
	default:
		if !there {
			e = remote.Entry{Key: w.Key, Created: s.revision, Pulse: 1, Age: source.Unknown}
		}
		e.Value, e.Changed, e.Silence = w.Value, s.revision, -s.passed
		e.Version++
		s.entries[w.Key] = e
	}
}

func (s *Store) read(r remote.Range) (found []remote.Entry) {
	for _, e := range s.entries {
		below := r.Below && strings.HasPrefix(e.Key, r.Key) && e.Key >= r.From
		if (e.Key == r.Key || below) && (r.Before == 0 || e.Created < r.Before) {
			e.Silence += s.passed
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

// feed reads everything again each time.
type feed struct {
	*Store
	below, from string
	at          int64
}

// Feed implements remote.Store.
func (s *Store) Feed(below, from string) remote.Feed { return &feed{s, below, from, 0} }

// Next implements remote.Feed.
func (f *feed) Next(context.Context) (news []remote.Entry, err error) {
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

// Close implements remote.Feed.
func (f *feed) Close() error { return nil }

// Removals implements remote.Store. It is not supported.
func (s *Store) Removals(string, bool) (news <-chan struct{}, stop func()) { return nil, func() {} }

// Stop implements remote.Store: a holder depends on nothing but its entry.
func (s *Store) Stop(int64) {}

// OpError implements remote.Store.
func (s *Store) OpError(ctx context.Context, op, name string, err error) error {
	return remote.OpError(ctx, source.OpError{Source: "memory", Op: op, Name: name, Err: err})
}

// Pulse implements remote.Store.
func (s *Store) Pulse(context.Context, time.Duration) remote.Pulse {
	return &remote.Beats{Store: s, Wait: s.wait}
}

// wait notifies a waiter of every removal.
func (s *Store) wait(w remote.Wait) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[w.Ticket] = w
	w.Tell() // an entry may have been removed before
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, w.Ticket)
	}
}

// TestExample runs the tests that every source must pass.
func TestExample(t *testing.T) {
	locktest.Run(t, locktest.Fixture{
		Fences: true, Marks: true, Deaths: true,
		Refused: []string{"a/b", "nul\x00byte", "\xff\xfe not utf-8"},
		Place: func(t testing.TB) func() source.Source {
			store := newStore()
			return func() source.Source { return open(t, store) }
		},
	})
	store := newStore()
	locktest.RunRegister(t, func(t testing.TB, name string) source.Register {
		r, err := open(t, store).Register(name)
		require.NoError(t, err)
		return r
	})
}

func open(t testing.TB, store remote.Store) *Source {
	t.Helper()
	src, err := Open(store)
	require.NoError(t, err)
	return src
}

// TestPageShowsTheExample checks that docs/internals/sources.md shows the tested code.
func TestPageShowsTheExample(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "internals", "sources.md"))
	require.NoError(t, err)
	this, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	blocks := 0
	for part := range strings.SplitSeq(string(page), "```go\n") {
		block, _, fenced := strings.Cut(part, "```")
		if !fenced {
			continue
		}
		blocks++
		require.Contains(t, string(this), block)
	}
	require.Equal(t, 3, blocks)
}
