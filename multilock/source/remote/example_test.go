package remote_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// The example of docs/sources.md: a whole source, whose server is a map in this process.

// Store is the server.
type Store struct {
	mu      sync.Mutex
	locks   map[string]entry  // who holds each lock
	results map[string][]byte // how the last job of a name ended
	changes int               // of results
	fence   uint64
}

// entry is a lock that is held: a record, and how many signs of life there were.
type entry struct {
	record remote.Record
	beats  int64
}

// change is the one operation of the server, and atomic: what it does, it does to the acquisition
// with this token ("" is nobody's), or to nothing.
func (s *Store) change(name, token string, do func(*entry)) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.locks[name]
	if e.record.Token != token {
		return false
	}
	if do(&e); e.record.Token == "" {
		delete(s.locks, name)
		return true
	}
	s.locks[name] = e
	return true
}

func (s *Store) read(name string) entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locks[name]
}

// keep keeps what a change says of the result. It is part of a change.
func (s *Store) keep(name string, c remote.Change) {
	switch {
	case c.Forget:
		delete(s.results, name)
	case c.Result != nil:
		s.results[name] = c.Result
	default:
		return
	}
	s.changes++
}

// Source is the locks of a store.
type Source struct {
	remote.Member
	store *Store
}

// Open opens a store.
func Open(store *Store) (*Source, error) {
	member, err := remote.Options[*Store]{Place: store}.Join("memory")
	return &Source{member, store}, err
}

// Names implements source.Source.
func (s *Source) Names(context.Context) ([]string, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return slices.Sorted(maps.Keys(s.store.locks)), nil
}

// Result implements source.Ledger.
func (s *Source) Result(_ context.Context, name string) (source.Result, error) {
	return s.ReadResult(name, func() ([]byte, error) {
		s.store.mu.Lock()
		defer s.store.mu.Unlock()
		return s.store.results[name], nil
	})
}

// Results implements source.Ledger.
func (s *Source) Results(context.Context) ([]string, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return slices.Sorted(maps.Keys(s.store.results)), nil
}

// Revision implements source.Ledger.
func (s *Source) Revision(context.Context) (string, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return strconv.Itoa(s.store.changes), nil
}

// Observe implements source.Source.
func (s *Source) Observe(_ context.Context, name string, policy source.StalePolicy) (source.Observer, error) {
	return remote.NewObserver(s, lock{name, s.store}, name, policy)
}

// Contend implements source.Source.
func (s *Source) Contend(_ context.Context, name string, claim source.Claim, policy source.StalePolicy) (_ source.Contender, err error) {
	c := &contender{lock: lock{name, s.store}}
	c.Contender, err = remote.NewContender(s, c, name, claim, policy)
	return c, err
}

// lock is one lock of the store.
type lock struct {
	name  string
	store *Store
}

// See implements remote.Lock.
func (l lock) See(context.Context) (remote.Seen, error) {
	e := l.store.read(l.name)
	return remote.Seen{
		Held: e.record.Token != "", Record: e.record.Read(l.name), Age: source.Unknown, Silence: source.Unknown,
		Sign: remote.Sign{Token: e.record.Token, Count: e.beats},
	}, nil
}

// Remove implements remote.Lock.
func (l lock) Remove(_ context.Context, seen remote.Seen, still bool) (freed remote.Freed, err error) {
	l.store.change(l.name, seen.Sign.Token, func(e *entry) {
		if freed.Held = still && e.beats != seen.Sign.Count; freed.Held {
			return
		}
		*e, freed.Done = entry{}, true
	})
	return freed, nil
}

// contender wants one lock.
type contender struct {
	*remote.Contender
	lock
}

// Attempt implements remote.Attempts.
func (c *contender) Attempt(context.Context) (source.Lease, error) {
	start, record := boottime.Now(), remote.NewRecord(source.NewToken(), c.Claim)
	if !c.store.change(c.name, "", func(e *entry) { *e = entry{record: record} }) {
		return nil, source.ErrHeld
	}
	l := &lease{lock: c.lock, token: record.Token}
	l.Lease = c.Acquired(l, record, start, 0)
	return l, nil
}

// lease is a lock that is held.
type lease struct {
	*remote.Lease
	lock
	token string
}

// change does something to the lock while it is this lease's.
func (l *lease) change(do func(*entry)) (mine bool) { return l.store.change(l.name, l.token, do) }

// Gone implements remote.Hold.
func (l *lease) Gone() error { return errors.New("its record is not there any more") }

// Beat implements remote.Hold.
func (l *lease) Beat(context.Context, time.Duration) (mine bool, err error) {
	return l.change(func(e *entry) { e.beats++ }), nil
}

// Free implements remote.Hold.
func (l *lease) Free(context.Context) (remote.Freed, error) {
	return remote.Freed{Done: l.change(func(e *entry) { *e = entry{} })}, nil
}

// Write implements remote.Hold.
func (l *lease) Write(_ context.Context, _ string, c remote.Change) (shown remote.Shown, err error) {
	shown.Mine = l.change(func(e *entry) {
		if e.record.Step == c.Before {
			e.record = c.Record
			l.store.keep(l.name, c)
		}
		shown.Step, shown.Left = e.record.Step, e.record.Step
	})
	return shown, nil
}

// ReadResult implements remote.Hold.
func (l *lease) ReadResult(context.Context) (result []byte, mine bool, err error) {
	mine = l.change(func(*entry) { result = l.store.results[l.name] })
	return result, mine, nil
}

// Fence implements source.Lease.
func (l *lease) Fence(context.Context) (number uint64, err error) {
	err = l.While(func() (mine bool, err error) {
		return l.change(func(*entry) {
			l.store.fence++
			number = l.store.fence
		}), nil
	})
	return number, err
}

// TestExample has the source pass what each has to pass.
func TestExample(t *testing.T) {
	locktest.Run(t, locktest.Fixture{
		Fences: true, Marks: true, Deaths: true,
		Refused: []string{"a/b", "nul\x00byte", "\xff\xfe not utf-8"},
		Place: func(t testing.TB) func() source.Source {
			store := &Store{locks: map[string]entry{}, results: map[string][]byte{}}
			return func() source.Source {
				src, err := Open(store)
				require.NoError(t, err)
				return src
			}
		},
	})
}

// TestPageShowsTheExample: what docs/sources.md shows is what was tested above.
func TestPageShowsTheExample(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "sources.md"))
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
	require.Equal(t, 4, blocks)
}
