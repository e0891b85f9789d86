package lockgroup_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// place is a lock group in memory, with a ledger. Tests say what is held and
// which results there are; it counts what it is asked.
type place struct {
	mu      sync.Mutex
	held    map[string][]multilock.Sighting // what the next looks see; the last stays
	results map[string]multilock.Result
	left    map[string]bool // empty directories
	rev     int
	asked   map[string]int
	broken  []string
	fail    map[string]error // what a call answers instead
	hang    <-chan struct{}
}

var _ source.Changes = (*place)(nil)
var _ source.Group = (*place)(nil)

func newPlace() *place {
	return &place{
		held: map[string][]multilock.Sighting{}, results: map[string]multilock.Result{}, left: map[string]bool{},
		asked: map[string]int{}, fail: map[string]error{},
	}
}

// enter counts a call, and fails or hangs as the test wants.
func (p *place) enter(call string) error {
	p.mu.Lock()
	p.asked[call]++
	err, hang := p.fail[call], p.hang
	p.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return err
}

func (p *place) count(call string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[call]
}

func (p *place) failing(call string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail[call] = err
}

// stall makes all calls hang for a while, from now on.
func (p *place) stall(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	back := make(chan struct{})
	p.hang = back
	after(d, func() { close(back) })
}

func (p *place) hold(name string, sightings ...multilock.Sighting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[name] = sightings
}

func (p *place) release(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, name)
}

func (p *place) commit(r multilock.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results[r.Name] = r
	p.rev++
}

func (p *place) isHeld(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held[name]) > 0
}

func (p *place) Vacant(context.Context) (bool, error) {
	err := p.enter("vacant")
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held)+len(p.left) == 0, err
}

func (p *place) Wake() (<-chan struct{}, func()) {
	_ = p.enter("wake")
	return nil, func() {}
}

func (p *place) Tidy(_ context.Context, name string) error {
	err := p.enter("tidy")
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.left, name)
	return err
}

func (p *place) Names(context.Context) ([]string, error) {
	err := p.enter("names")
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.merged())), err
}

func (p *place) merged() map[string]bool {
	all := maps.Clone(p.left)
	for name := range p.held {
		all[name] = true
	}
	return all
}

func (p *place) Revision(context.Context) (string, error) {
	err := p.enter("revision")
	p.mu.Lock()
	defer p.mu.Unlock()
	return strconv.Itoa(p.rev), err
}

func (p *place) Results(context.Context) ([]string, error) {
	err := p.enter("results")
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.results)), err
}

func (p *place) Result(_ context.Context, name string) (multilock.Result, error) {
	err := p.enter("result")
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.results[name]
	if !ok {
		err = errors.Join(err, multilock.ErrNoResult)
	}
	return r, err
}

func (p *place) Contend(context.Context, string, source.Claim, multilock.Patience) (source.Contender, error) {
	return nil, multilock.ErrUnsupported
}

func (p *place) Observe(_ context.Context, name string, _ multilock.Patience) (source.Observer, error) {
	return &observer{p, name}, nil
}

type observer struct {
	p    *place
	name string
}

func (o *observer) Look(context.Context) (multilock.Sighting, error) {
	err := o.p.enter("look")
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	seen := o.p.held[o.name]
	if len(seen) == 0 {
		return multilock.Sighting{State: multilock.StateFree}, err
	}
	if len(seen) > 1 {
		o.p.held[o.name] = seen[1:]
	}
	return seen[0], err
}

func (o *observer) Break(context.Context) error {
	if err := o.p.enter("break"); err != nil {
		return err
	}
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	delete(o.p.held, o.name)
	o.p.broken = append(o.p.broken, o.name)
	return nil
}

func (o *observer) Force(context.Context) error { return errors.New("a barrier never uses force") }

func (o *observer) Close() error { return nil }

// seen is somebody's lock in a state.
func seen(state source.State, host string) multilock.Sighting {
	s := multilock.Sighting{State: state, Why: "it is " + state.String(), Next: time.Second}
	s.Record.Token = "token of " + host
	s.Record.Holder.Identity = process.Identity{Host: host, PID: 7}
	return s
}

func alive(host string) multilock.Sighting { return seen(multilock.StateHeld, host) }

func succeeded(name string) multilock.Result { return multilock.Result{Name: name, Final: true} }

func failed(name string, final bool) multilock.Result {
	return multilock.Result{Name: name, Exit: 3, Final: final, By: process.Identity{Host: "node7"}}
}

// after does something later in the test's own time.
func after(d time.Duration, do func()) { time.AfterFunc(d, do) }
