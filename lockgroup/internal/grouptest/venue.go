package grouptest

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Venue is a Place that can run jobs, with a history and a manifest.
type Venue struct {
	*Place
	Mu       sync.Mutex
	Shared   bool // other users can write the manifest
	events   []source.Event
	manifest [][]byte // its sections
	tries    map[string]int
}

func NewVenue() *Venue { return &Venue{Place: NewPlace(), tries: map[string]int{}} }

func (v *Venue) Tried(name string) int {
	v.Mu.Lock()
	defer v.Mu.Unlock()
	return v.tries[name]
}

func (v *Venue) Record(_ context.Context, events []source.Event) error {
	err := v.Enter("record")
	v.Mu.Lock()
	defer v.Mu.Unlock()
	v.events = append(v.events, events...)
	return err
}

func (v *Venue) History(context.Context, time.Time) iter.Seq2[source.Event, error] {
	return func(func(source.Event, error) bool) {}
}

func (v *Venue) Follow(time.Time) source.Follower { return &venueFollower{v: v} }

type venueFollower struct {
	v    *Venue
	read int
}

func (f *venueFollower) Next(context.Context) ([]source.Event, error) {
	err := f.v.Enter("follow")
	f.v.Mu.Lock()
	defer f.v.Mu.Unlock()
	events := f.v.events[f.read:]
	f.read = len(f.v.events)
	return events, err
}

func (f *venueFollower) Close() error { return nil }

func (v *Venue) Publish(_ context.Context, manifest []byte) ([]byte, error) {
	err := v.Enter("publish")
	v.Mu.Lock()
	defer v.Mu.Unlock()
	if v.manifest == nil {
		v.manifest = [][]byte{manifest}
	}
	return v.manifest[v.lastWhole()], err
}

// lastWhole returns the index of the last section that replaces those before it. The caller holds the mutex.
func (v *Venue) lastWhole() (last int) {
	for n, section := range v.manifest {
		if bytes.HasPrefix(section, []byte(source.Whole)) {
			last = n
		}
	}
	return last
}

func (v *Venue) Grown(_ context.Context, known int) (bool, error) {
	err := v.Enter("grown")
	v.Mu.Lock()
	defer v.Mu.Unlock()
	return len(v.manifest) > known, err
}

func (v *Venue) OnlyOurs() bool { return !v.Shared }

func (v *Venue) Sections(context.Context, int) ([][]byte, error) {
	err := v.Enter("read the manifest")
	v.Mu.Lock()
	defer v.Mu.Unlock()
	return slices.Clone(v.manifest), err
}

func (v *Venue) Continue(_ context.Context, known [][]byte, more []byte) (bool, error) {
	err := v.Enter("continue the manifest")
	v.Mu.Lock()
	defer v.Mu.Unlock()
	if slices.EqualFunc(v.manifest, known, bytes.Equal) {
		v.manifest = append(v.manifest, more)
	}
	return len(v.manifest) > len(known) && bytes.Equal(v.manifest[len(known)], more), err
}

func (v *Venue) Retract(context.Context) error { return nil }

func (v *Venue) OpenManifest(context.Context) (io.ReadCloser, error) {
	v.Mu.Lock()
	defer v.Mu.Unlock()
	if v.manifest == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(bytes.Join(v.manifest[v.lastWhole():], nil))), nil
}

func (v *Venue) Contend(_ context.Context, name string, claim source.Claim, _ multilock.StalePolicy) (source.Contender, error) {
	return &venueContender{observer: observer{v.Place, name}, v: v, claim: claim}, nil
}

type venueContender struct {
	observer
	v     *Venue
	claim source.Claim
}

func (c *venueContender) Try(context.Context) (source.Lease, error) {
	c.v.Mu.Lock()
	c.v.tries[c.name]++
	c.v.Mu.Unlock()
	_ = c.v.Enter("try")
	record := source.Record{Name: c.name, Token: "token of " + c.name, Claim: c.claim}
	record.Holder.Identity = process.Identity{Host: "here", PID: 1}
	seen := Alive("here")
	seen.Record = record
	if !c.v.take(c.name, seen) {
		_ = c.v.Enter("refusal")
		return nil, multilock.ErrHeld
	}
	return &venueLease{v: c.v, record: record, since: boottime.Now()}, nil
}

func (c *venueContender) Wake() <-chan struct{} { return nil }

type venueLease struct {
	v      *Venue
	record source.Record
	since  boottime.Instant
}

func (l *venueLease) Record() source.Record                 { return l.record }
func (l *venueLease) Since() boottime.Instant               { return l.since }
func (l *venueLease) Renew(context.Context) error           { return l.v.Enter("renew") }
func (l *venueLease) Fence(context.Context) (uint64, error) { return 0, multilock.ErrUnsupported }
func (l *venueLease) MarkJob(context.Context, ...process.Group) error {
	return multilock.ErrUnsupported
}
func (l *venueLease) Close() error                 { return nil }
func (l *venueLease) Forget(context.Context) error { return multilock.ErrUnsupported }

func (l *venueLease) Release(context.Context) error {
	_ = l.v.Enter("release")
	l.v.Release(l.record.Name)
	return nil
}

func (l *venueLease) Outcome(context.Context) (multilock.Result, error) {
	_ = l.v.Enter("outcome")
	return l.v.recorded(l.record.Name)
}

func (l *venueLease) Commit(ctx context.Context, r multilock.Result) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := l.v.Enter("commit"); err != nil {
		return err
	}
	l.v.Commit(r)
	return nil
}
