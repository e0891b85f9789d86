//go:build linux

package soak_test

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/multilock/go/multilock/locktest"
)

// journal gathers the events of all workers as they come in.
type journal struct {
	mu      sync.Mutex
	events  []locktest.Event
	byName  map[string]time.Time // when the last acquisition was heard of, by lock
	bySlot  map[string]time.Time // and by the place of the worker
	counts  map[locktest.Kind]int
	changed chan struct{} // closed at the next acquisition
	keep    *json.Encoder
}

func newJournal(keep io.Writer) *journal {
	return &journal{
		byName: map[string]time.Time{}, bySlot: map[string]time.Time{},
		counts: map[locktest.Kind]int{}, changed: make(chan struct{}), keep: json.NewEncoder(keep),
	}
}

// add takes an event of the worker in a place.
func (j *journal) add(slot string, e locktest.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
	j.counts[e.Kind]++
	if e.Kind == locktest.Acquired {
		now := time.Now()
		j.byName[e.Name], j.bySlot[slot] = now, now
		close(j.changed)
		j.changed = make(chan struct{})
	}
	return j.keep.Encode(e)
}

// awaitNames waits until each lock has been acquired since a moment, and returns
// those that were not when ctx ended.
func (j *journal) awaitNames(ctx context.Context, names []string, since time.Time) (late []string) {
	return j.await(ctx, names, since, j.byName)
}

// awaitSlots waits until the worker in each place has acquired something.
func (j *journal) awaitSlots(ctx context.Context, slots []string, since time.Time) (late []string) {
	return j.await(ctx, slots, since, j.bySlot)
}

func (j *journal) await(ctx context.Context, keys []string, since time.Time, last map[string]time.Time) []string {
	for {
		j.mu.Lock()
		late, changed := before(keys, last, since), j.changed
		j.mu.Unlock()
		if len(late) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return late
		}
	}
}

func before(keys []string, last map[string]time.Time, moment time.Time) (late []string) {
	for _, key := range keys {
		if last[key].Before(moment) {
			late = append(late, key)
		}
	}
	return late
}

func (j *journal) count(kind locktest.Kind) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts[kind]
}

// all returns the events so far.
func (j *journal) all() []locktest.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events[:len(j.events):len(j.events)]
}
