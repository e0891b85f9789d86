package remote_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// The example of docs/sources.md: a whole source, whose server is a map in this process.

// Store is the server.
type Store struct {
	mu    sync.Mutex
	locks map[string]entry // who holds each lock
	fence uint64
}

// entry is a lock that is held: a record, and how many signs of life there were.
type entry struct {
	record remote.Record
	beats  int
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

// Source is the locks of a store.
type Source struct {
	remote.Member
	store *Store
}

// Open opens a store.
func Open(store *Store) (*Source, error) {
	member, err := remote.Join("memory", "", "", process.Identity{})
	return &Source{member, store}, err
}

// Names implements source.Source.
func (s *Source) Names(context.Context) ([]string, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return slices.Sorted(maps.Keys(s.store.locks)), nil
}

// Observe implements source.Source.
func (s *Source) Observe(_ context.Context, name string, patience source.Patience) (source.Observer, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	return &observer{remote.NewObserver[sign](s.Self(), name, patience), s}, nil
}

// Contend implements source.Source.
func (s *Source) Contend(_ context.Context, name string, claim source.Claim, patience source.Patience) (source.Contender, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	return &contender{observer{remote.NewObserver[sign](s.Self(), name, patience), s}, claim.By(s.Self())}, nil
}

// observer watches one lock.
type observer struct {
	remote.Observer[sign]
	src *Source
}

// sign is what a sign of life changes: no two holders, and no two signs, have the same.
type sign struct {
	token string
	beats int
}

// Look implements source.Observer.
func (o *observer) Look(context.Context) (source.Sighting, error) {
	start := boottime.Now()
	e := o.src.store.read(o.Name)
	if e.record.Token == "" {
		return o.Free(), nil
	}
	o.Record = e.record.Read(o.Name)
	o.Watch.Add(sign{e.record.Token, e.beats}, start, source.WatchLimits{Gap: 2 * remote.Far})
	return o.Conclude(o.Evidence(), remote.Judge), nil
}

// Break implements source.Observer. It breaks what the last look saw, and not one that has shown
// life since.
func (o *observer) Break(context.Context) error {
	seen := o.Watch.Last()
	if o.Verdict.State != source.StateDead {
		return source.ErrHeld
	}
	err := error(nil)
	o.src.store.change(o.Name, seen.token, func(e *entry) {
		if e.beats != seen.beats {
			err = source.ErrHeld
			return
		}
		*e = entry{}
	})
	return err
}

// Force implements source.Observer.
func (o *observer) Force(context.Context) error {
	if o.Record.Token == "" {
		return source.ErrFree
	}
	o.src.store.change(o.Name, o.Record.Token, func(e *entry) { *e = entry{} })
	return nil
}

// contender wants one lock.
type contender struct {
	observer
	claim source.Claim
}

// Try implements source.Contender.
func (c *contender) Try(context.Context) (source.Lease, error) {
	start, record := boottime.Now(), remote.NewRecord(source.NewToken(), c.claim)
	if !c.src.store.change(c.Name, "", func(e *entry) { *e = entry{record: record} }) {
		return nil, source.ErrHeld
	}
	return &lease{remote.NewHolding(record.Read(c.Name), start), c.src.store}, nil
}

// Wake implements source.Contender: nobody tells.
func (c *contender) Wake() <-chan struct{} { return nil }

// lease is a lock that is held.
type lease struct {
	*remote.Holding
	store *Store
}

var errGone = errors.New("its record is not there any more")

// change does something to the lock while it is this lease's.
func (l *lease) change(do func(*entry)) error {
	switch ended := l.Ended(); {
	case ended != nil:
		return ended
	case !l.store.change(l.Record().Name, l.Record().Token, do):
		return l.Lost(errGone)
	}
	return nil
}

// Renew implements source.Lease.
func (l *lease) Renew(context.Context) error { return l.change(func(e *entry) { e.beats++ }) }

// Release implements source.Lease.
func (l *lease) Release(context.Context) error {
	err := l.change(func(e *entry) { *e = entry{} })
	if err == nil {
		_ = l.End(source.ErrReleased)
		return nil
	}
	return l.End(err)
}

// Fence implements source.Lease.
func (l *lease) Fence(context.Context) (number uint64, err error) {
	err = l.change(func(*entry) {
		l.store.fence++
		number = l.store.fence
	})
	return number, err
}

// MarkJob implements source.Lease.
func (l *lease) MarkJob(_ context.Context, jobs ...process.Group) error {
	return l.change(func(e *entry) { e.record.Groups = jobs })
}

// TestExample has the source pass what each has to pass.
func TestExample(t *testing.T) {
	locktest.Run(t, locktest.Fixture{
		Fences: true, Marks: true, Deaths: true,
		Refused: []string{"a/b", "nul\x00byte", "\xff\xfe not utf-8"},
		Place: func(t testing.TB) func() source.Source {
			store := &Store{locks: map[string]entry{}}
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
