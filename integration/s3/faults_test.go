package s3_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/s3lab"
	"github.com/multilock/go/multilock/source"
)

// TestStress has processes contend for one lock while the server suffers faults.
func TestStress(t *testing.T) {
	for name, scene := range map[string]func(*testing.T) (g *s3lab.Gateway, address string, fault func()){
		"server killed": func(t *testing.T) (*s3lab.Gateway, string, func()) {
			g := s3lab.Start(t)
			return g, g.Address, func() {
				g.Kill()
				time.Sleep(engine.StressTTL / 2)
				g.Begin()
			}
		},
		"server paused": func(t *testing.T) (*s3lab.Gateway, string, func()) {
			g := s3lab.Start(t)
			return g, g.Address, func() { g.Pause(engine.StressTTL) }
		},
		"requests and replies lost": func(t *testing.T) (*s3lab.Gateway, string, func()) {
			g := s3lab.Start(t)
			proxy := s3lab.NewProxy(t, g.Address)
			outcomes := []engine.Outcome{engine.Done, engine.Done, engine.Dropped, engine.Lost, engine.Zombie, engine.Torn, engine.Repeated, engine.Broken}
			return g, proxy.Address, func() {
				proxy.Inject(func(int, string) engine.Outcome { return outcomes[rand.N(len(outcomes))] }) //nolint:gosec // no secret
				time.Sleep(engine.StressTTL / 2)
				proxy.Inject(nil)
				proxy.Land()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, address, fault := scene(t)
			place := g.Place("stress")
			engine.Stress(t, s3lab.URL(address, place), *longStress, fault, func() source.Source { return open(t, g.Address, place, "") })
		})
	}
}
