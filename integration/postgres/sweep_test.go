package postgres_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/pglock"
)

// TestSweep runs each operation with each fault at each of its requests, every time in a new group.
func TestSweep(t *testing.T) {
	s := pglab.Start(t, pglab.Options{Settings: map[string]string{"max_connections": "500"}})
	value := s.Looker()
	engine.Sweep(t, map[string]engine.Trouble{"cut": {Outcome: engine.Cut, Times: 1}, "torn": {Outcome: engine.Torn, Times: 1}, "torn twice": {Outcome: engine.Torn, Times: 2}},
		func(t testing.TB, what engine.Trouble, n int) *locktest.Bench {
			proxy, group := pglab.NewProxy(t, s.Address, 0), schema()
			b := engine.Bench(t, proxy, what, n)
			b.Struck, b.Other = open(t, proxy.Address, pglock.DefaultSchema, group), open(t, s.Address, pglock.DefaultSchema, group)
			makeSchema(t, b.Other)
			b.Token = func() string {
				return value(fmt.Sprintf("SELECT convert_from(value, 'UTF8')::jsonb->>'token' FROM multilock.entry WHERE key = 'lock/%s/nightly'", group))
			}
			b.Gone = func() { // no place in the queue is left
				require.Equal(t, "0", value(fmt.Sprintf("SELECT count(*) FROM multilock.entry WHERE key LIKE 'wait/%s/%%'", group)))
			}
			return b
		})
}
