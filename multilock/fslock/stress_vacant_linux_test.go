package fslock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs"
)

// Barriers remove the group's directory again and again under contenders who
// come and go. Nobody gets an error, nobody holds what another holds, and no
// barrier passes while somebody holds a lock all through its question.
func TestBarriersAndContendersInOneGroup(t *testing.T) {
	for name, kind := range map[string]vfs.FileSystem{"local": {Type: "test", Local: true}, "shared": {Type: "test"}} {
		t.Run(name, func(t *testing.T) {
			g := &busyGroup{t: t, base: fresh(t), kind: kind}
			var barriers, contenders sync.WaitGroup
			for range 4 {
				barriers.Go(g.askOften)
			}
			for i := range 6 {
				contenders.Go(func() { g.cycle(fmt.Sprintf("lock%d", i%3), 25) })
			}
			contenders.Wait()
			g.over.Store(true)
			barriers.Wait()
			require.Positive(t, g.passes.Load())
			require.Positive(t, g.refusals.Load())
			t.Logf("%d questions found the group vacant, %d did not", g.passes.Load(), g.refusals.Load())
		})
	}
}

type busyGroup struct {
	t                *testing.T
	base             string
	kind             vfs.FileSystem
	over             atomic.Bool
	holding          [3]atomic.Int32
	begun, ended     atomic.Int64 // of holding any lock
	passes, refusals atomic.Int64
}

func (g *busyGroup) source() *fslock.Source {
	fs := sharedFS()
	fs.Describe(g.kind)
	src, err := fslock.Open(fslock.Options{Base: g.base, FS: fs})
	g.check(err)
	return src
}

// check is for goroutines, which may not end the test.
func (g *busyGroup) check(err error) {
	if err != nil {
		g.t.Error(err)
	}
}

func (g *busyGroup) askOften() {
	src := g.source()
	defer src.Close()
	for !g.over.Load() && !g.t.Failed() {
		ended, begun := g.ended.Load(), g.begun.Load()
		vacant, err := src.Vacant(context.Background())
		time.Sleep(100 * time.Microsecond) // who asks without any pause lets nobody in
		g.check(err)
		if !vacant {
			g.refusals.Add(1)
			continue
		}
		g.passes.Add(1)
		if held := begun - ended; held > 0 && g.ended.Load() == ended {
			g.t.Errorf("the group is vacant, though %d held a lock before and nobody has released one since", held)
		}
	}
}

func (g *busyGroup) cycle(name string, times int) {
	src := g.source()
	defer src.Close()
	inside := &g.holding[name[len(name)-1]-'0']
	for range times {
		if g.t.Failed() {
			return
		}
		lock, err := multilock.Acquire(within(g.t), src, name, multilock.Options{})
		if err != nil {
			g.t.Error(err)
			return
		}
		g.begun.Add(1)
		if inside.Add(1) != 1 {
			g.t.Errorf("%s is held twice", name)
		}
		g.check(lock.Verify(context.Background()))
		inside.Add(-1)
		g.ended.Add(1) // before the release begins
		g.check(lock.Release(context.Background()))
	}
}
