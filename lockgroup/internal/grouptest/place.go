// Package grouptest implements lock groups in memory, for tests.
package grouptest

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

// Place is a lock group in memory, with a ledger. Tests set which locks are held and
// which results exist; Place counts the calls.
type Place struct {
	Mu      sync.Mutex
	held    map[string][]multilock.Observation // what the next inspections return; the last one repeats
	results map[string]multilock.Result
	Left    map[string]bool // empty directories
	Rev     int             // the revision of the results
	asked   map[string]int
	Broken  []string
	fail    map[string]error // errors that calls return
	Hang    <-chan struct{}  // calls hang until it is closed
	Latency time.Duration    // of each call
}

var _ source.Ledger = (*Place)(nil)
var _ source.Group = (*Place)(nil)

func NewPlace() *Place {
	return &Place{
		held: map[string][]multilock.Observation{}, results: map[string]multilock.Result{}, Left: map[string]bool{},
		asked: map[string]int{}, fail: map[string]error{},
	}
}

// Enter counts a call, and fails or hangs as the test configured.
func (p *Place) Enter(call string) error {
	p.Mu.Lock()
	p.asked[call]++
	err, hang := p.fail[call], p.Hang
	p.Mu.Unlock()
	if hang != nil {
		<-hang
	}
	time.Sleep(p.Latency)
	return err
}

func (p *Place) Count(call string) int {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return p.asked[call]
}

func (p *Place) Fail(call string, err error) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.fail[call] = err
}

// Stall makes all calls hang for a while, starting now.
func (p *Place) Stall(d time.Duration) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	back := make(chan struct{})
	p.Hang = back
	time.AfterFunc(d, func() { close(back) })
}

func (p *Place) Hold(name string, observations ...multilock.Observation) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.held[name] = observations
}

// take marks a free name as held, with the given observation.
func (p *Place) take(name string, seen multilock.Observation) bool {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if len(p.held[name]) > 0 {
		return false
	}
	p.held[name] = []multilock.Observation{seen}
	return true
}

func (p *Place) Release(name string) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	delete(p.held, name)
}

func (p *Place) Commit(r multilock.Result) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.results[r.Name] = r
	p.Rev++
}

// Forget removes a result.
func (p *Place) Forget(name string) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	delete(p.results, name)
}

func (p *Place) IsHeld(name string) bool {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return len(p.held[name]) > 0
}

func (p *Place) Empty(context.Context) (bool, error) {
	err := p.Enter("empty")
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return len(p.held)+len(p.Left) == 0, err
}

func (p *Place) Wake() (<-chan struct{}, func()) {
	_ = p.Enter("wake")
	return nil, func() {}
}

func (p *Place) Tidy(_ context.Context, name string) error {
	err := p.Enter("tidy")
	p.Mu.Lock()
	defer p.Mu.Unlock()
	delete(p.Left, name)
	return err
}

func (p *Place) Names(context.Context) ([]string, error) {
	err := p.Enter("names")
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return slices.Sorted(maps.Keys(p.merged())), err
}

func (p *Place) merged() map[string]bool {
	all := maps.Clone(p.Left)
	for name := range p.held {
		all[name] = true
	}
	return all
}

func (p *Place) Revision(context.Context) (string, error) {
	err := p.Enter("revision")
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return strconv.Itoa(p.Rev), err
}

func (p *Place) Results(context.Context) ([]string, error) {
	err := p.Enter("results")
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return slices.Sorted(maps.Keys(p.results)), err
}

func (p *Place) Result(_ context.Context, name string) (multilock.Result, error) {
	err := p.Enter("result")
	r, none := p.recorded(name)
	return r, errors.Join(err, none)
}

func (p *Place) recorded(name string) (multilock.Result, error) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	r, ok := p.results[name]
	if !ok {
		return r, multilock.ErrNoResult
	}
	return r, nil
}

func (p *Place) Contend(context.Context, string, source.Claim, multilock.StalePolicy) (source.Contender, error) {
	return nil, multilock.ErrUnsupported
}

func (p *Place) Observe(_ context.Context, name string, _ multilock.StalePolicy) (source.Observer, error) {
	return &observer{p, name}, nil
}

type observer struct {
	p    *Place
	name string
}

func (o *observer) Look(context.Context) (multilock.Observation, error) {
	err := o.p.Enter("look")
	o.p.Mu.Lock()
	defer o.p.Mu.Unlock()
	seen := o.p.held[o.name]
	if len(seen) == 0 {
		return multilock.Observation{State: multilock.StateFree}, err
	}
	if len(seen) > 1 {
		o.p.held[o.name] = seen[1:]
	}
	return seen[0], err
}

func (o *observer) Break(context.Context) error {
	if err := o.p.Enter("break"); err != nil {
		return err
	}
	o.p.Mu.Lock()
	defer o.p.Mu.Unlock()
	delete(o.p.held, o.name)
	o.p.Broken = append(o.p.Broken, o.name)
	return nil
}

func (o *observer) Force(context.Context) error { return errors.New("a barrier never uses force") }

func (o *observer) Close() error { return nil }

// Seen is the observation of a lock held by a host, in a state.
func Seen(state source.State, host string) multilock.Observation {
	s := multilock.Observation{State: state, Why: "it is " + state.String(), Next: time.Second}
	s.Record.Token = "token of " + host
	s.Record.Holder.Identity = process.Identity{Host: host, PID: 7}
	return s
}

func Alive(host string) multilock.Observation { return Seen(multilock.StateHeld, host) }

func Succeeded(name string) multilock.Result { return multilock.Result{Name: name, Final: true} }

func Failed(name string, final bool) multilock.Result {
	return multilock.Result{Name: name, Exit: 3, Final: final, By: process.Identity{Host: "node7"}}
}
