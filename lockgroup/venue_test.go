package lockgroup_test

import (
	"context"
	"sync"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// venue is a place in which jobs can be run, with a history and a manifest.
type venue struct {
	*place
	mu       sync.Mutex
	events   []source.Event
	manifest []byte
	tries    map[string]int
}

func newVenue() *venue { return &venue{place: newPlace(), tries: map[string]int{}} }

func (v *venue) tried(name string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tries[name]
}

func (v *venue) Record(_ context.Context, events []source.Event) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.events = append(v.events, events...)
	return v.enter("record")
}

func (v *venue) History(context.Context, time.Time) ([]source.Event, error) { return nil, nil }

func (v *venue) Follow(time.Time) source.Follower { return &venueFollower{v: v} }

type venueFollower struct {
	v    *venue
	read int
}

func (f *venueFollower) Next(context.Context) ([]source.Event, error) {
	err := f.v.enter("follow")
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	events := f.v.events[f.read:]
	f.read = len(f.v.events)
	return events, err
}

func (f *venueFollower) Close() error { return nil }

func (v *venue) Publish(_ context.Context, manifest []byte) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.manifest == nil {
		v.manifest = manifest
	}
	return v.manifest, v.enter("publish")
}

func (v *venue) Retract(context.Context) error { return nil }

func (v *venue) Contend(_ context.Context, name string, claim source.Claim, _ multilock.Patience) (source.Contender, error) {
	return &venueContender{observer: observer{v.place, name}, v: v, claim: claim}, nil
}

type venueContender struct {
	observer
	v     *venue
	claim source.Claim
}

func (c *venueContender) Try(context.Context) (source.Lease, error) {
	c.v.mu.Lock()
	c.v.tries[c.name]++
	c.v.mu.Unlock()
	if c.v.isHeld(c.name) {
		return nil, multilock.ErrHeld
	}
	c.v.hold(c.name, alive("here"))
	record := source.Record{Name: c.name, Token: "token of " + c.name, Claim: c.claim}
	record.Holder.Identity = process.Identity{Host: "here", PID: 1}
	return &venueLease{v: c.v, record: record, since: boottime.Now()}, nil
}

func (c *venueContender) Wake() <-chan struct{} { return nil }

type venueLease struct {
	v      *venue
	record source.Record
	since  boottime.Instant
}

func (l *venueLease) Record() source.Record                        { return l.record }
func (l *venueLease) Since() boottime.Instant                      { return l.since }
func (l *venueLease) Renew(context.Context) error                  { return nil }
func (l *venueLease) Fence(context.Context) (uint64, error)        { return 0, multilock.ErrUnsupported }
func (l *venueLease) MarkJob(context.Context, process.Group) error { return multilock.ErrUnsupported }
func (l *venueLease) Close() error                                 { return nil }
func (l *venueLease) Forget(context.Context) error                 { return multilock.ErrUnsupported }

func (l *venueLease) Release(context.Context) error {
	l.v.release(l.record.Name)
	return nil
}

func (l *venueLease) Outcome(ctx context.Context) (multilock.Result, error) {
	return l.v.Result(ctx, l.record.Name)
}

func (l *venueLease) Commit(_ context.Context, r multilock.Result) error {
	if err := l.v.enter("commit"); err != nil {
		return err
	}
	l.v.commit(r)
	return nil
}
