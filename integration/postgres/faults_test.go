package postgres_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/multilock/source"
)

var longStress = flag.Bool("long", false, "the long form of the stress tests: ten minutes for each fault")

// TestStress has processes contend for one lock while the server is killed and restarted, or paused, or
// connections are cut in the middle of statements and replies, or the server's disk is full, or a
// synchronous standby replaces the server.
func TestStress(t *testing.T) {
	for name, scene := range map[string]func(*testing.T) (url string, fault func()){
		"server killed": func(t *testing.T) (string, func()) {
			s := pglab.Start(t, pglab.Options{})
			return s.URL("schema=stress"), func() {
				s.Kill()
				time.Sleep(engine.StressTTL / 2)
				s.Begin()
			}
		},
		"server paused": func(t *testing.T) (string, func()) {
			s := pglab.Start(t, pglab.Options{})
			return s.URL("schema=stress"), func() { s.Pause(engine.StressTTL) }
		},
		"connections cut": func(t *testing.T) (string, func()) {
			s := pglab.Start(t, pglab.Options{})
			proxy := pglab.NewProxy(t, s.Address, 0)
			return pglab.URL(proxy.Address, "schema=stress"), func() {
				proxy.Inject(func(int, string) engine.Outcome {
					return []engine.Outcome{engine.Done, engine.Done, engine.Cut, engine.Torn, engine.Lost, engine.Broken}[rand.N(6)] //nolint:gosec // no secret
				})
				time.Sleep(engine.StressTTL / 2)
				proxy.Inject(nil)
			}
		},
		"disk full": func(t *testing.T) (string, func()) {
			s := startSmall(t)
			dies := false
			return s.URL("schema=stress"), func() {
				s.Fill()
				if dies {
					s.Exhaust()
				}
				time.Sleep(engine.StressTTL / 2)
				s.Empty()
				if dies {
					s.Begin()
				}
				dies = !dies
			}
		},
		"behind a pooler": func(t *testing.T) (string, func()) {
			s := pglab.Start(t, pglab.Options{})
			return pglab.URL(s.Pooler(t, 3), "schema=stress"), func() {
				s.Kill()
				s.Begin()
			}
		},
		"failover": func(t *testing.T) (string, func()) {
			p := newPair(t)
			return pglab.URL(p.first.Address+","+p.second.Address, "schema=stress"), p.failOver
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, fault := scene(t)
			engine.Stress(t, url, *longStress, fault, func() source.Source { return openURL(t, url) })
		})
	}
}

// pair is a primary and a synchronous standby.
type pair struct {
	*testing.T
	first, second *pglab.Server
	primary       *pglab.Server
}

func newPair(t *testing.T) *pair {
	p := &pair{T: t, first: pglab.Start(t, pglab.Options{})}
	p.primary, p.second = p.first, p.first.Standby(t)
	p.first.WaitFor("*")
	return p
}

// failOver kills the primary and promotes the standby. The old primary becomes its standby.
func (p *pair) failOver() {
	old, next := p.primary, p.second
	if old == p.second {
		next = p.first
	}
	old.Kill()
	next.Promote()
	next.WaitFor("")
	old.Rebuild(next)
	next.WaitFor("*")
	p.primary = next
}
