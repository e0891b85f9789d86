package nfs_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// gate holds up one operation of a lock right before it is carried out, so that a
// test can bring the trouble at that very moment.
type gate struct {
	stops        func(faultfs.Op) bool
	arrived      chan struct{}
	opened       chan struct{}
	arrive, open sync.Once
}

// newGate stops the first operation of a kind on a path with that end.
func newGate(t testing.TB, kind, suffix string) *gate {
	g := &gate{
		stops:   func(op faultfs.Op) bool { return op.Kind == kind && strings.HasSuffix(op.Real, suffix) },
		arrived: make(chan struct{}), opened: make(chan struct{}),
	}
	t.Cleanup(g.letPass)
	return g
}

// inject is the gate's faultfs.Injector: only the first such operation stops.
func (g *gate) inject(op faultfs.Op) error {
	if op.Phase == faultfs.Before && g.stops(op) {
		g.arrive.Do(func() {
			close(g.arrived)
			<-g.opened
		})
	}
	return nil
}

// await returns when the operation stands at the gate.
func (g *gate) await(t testing.TB) {
	t.Helper()
	select {
	case <-g.arrived:
	case <-within(t).Done():
		require.FailNow(t, "the operation was never begun")
	}
}

func (g *gate) letPass() { g.open.Do(func() { close(g.opened) }) }

// gatedSource is a source of a place whose operations can be held up. Whatever
// the first use of a place makes there is made already.
func (p place) gatedSource(t testing.TB, h host) (*fslock.Source, *faultfs.FS) {
	t.Helper()
	faulty := faultfs.New(h, nil)
	src := p.sourceThrough(t, h, faulty)
	require.NoError(t, try(t, src, "first", longOptions()).Release(within(t)))
	return src, faulty
}
