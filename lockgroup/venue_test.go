package lockgroup_test

import (
	"context"
	"sync"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
)

// venue is a place in which jobs can be run, with a history and a manifest.
type venue struct {
	*place
	mu       sync.Mutex
	events   []multilock.Event
	manifest []byte
	tries    map[string]int
}

func newVenue() *venue { return &venue{place: newPlace(), tries: map[string]int{}} }

func (v *venue) tried(name string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tries[name]
}

func (v *venue) Record(_ context.Context, events []multilock.Event) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.events = append(v.events, events...)
	return v.enter("record")
}

func (v *venue) History(context.Context, time.Time) ([]multilock.Event, error) { return nil, nil }

func (v *venue) Follow(time.Time) multilock.Follower { return &venueFollower{v: v} }

type venueFollower struct {
	v    *venue
	read int
}

func (f *venueFollower) Next(context.Context) ([]multilock.Event, error) {
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

func (v *venue) Contend(_ context.Context, name string, claim multilock.Claim, _ multilock.Patience) (multilock.Contender, error) {
	return &venueContender{observer: observer{v.place, name}, v: v, claim: claim}, nil
}

type venueContender struct {
	observer
	v     *venue
	claim multilock.Claim
}

func (c *venueContender) Try(context.Context) (multilock.Lease, error) {
	c.v.mu.Lock()
	c.v.tries[c.name]++
	c.v.mu.Unlock()
	if c.v.isHeld(c.name) {
		return nil, multilock.ErrHeld
	}
	c.v.hold(c.name, alive("here"))
	record := multilock.Record{Name: c.name, Token: "token of " + c.name, Claim: c.claim}
	record.Holder.Identity = process.Identity{Host: "here", PID: 1}
	return &venueLease{v: c.v, record: record, since: boottime.Now()}, nil
}

func (c *venueContender) Wake() <-chan struct{} { return nil }

type venueLease struct {
	v      *venue
	record multilock.Record
	since  boottime.Instant
}

func (l *venueLease) Record() multilock.Record                     { return l.record }
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
