//go:build linux

package stalefs_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/broken"
	"github.com/multilock/go/integration/stalefs"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/vfs"
)

// A test that cannot fail proves nothing: with a protocol that breaks one of its rules, the same
// run must find two holders at once.
// Rule: none (test of the stress)
func TestBrokenVariantsAreCaught(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Minute // most are caught within seconds, some within a minute
	for _, v := range broken.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s := newStress(t, v.FS(), 0)
			s.calm = calmFor(v)
			start := time.Now()
			s.run(limit)
			caught := s.check()
			require.Error(t, caught, "%s: violation not detected", v.What)
			t.Logf("after %s: %v", time.Since(start).Round(time.Millisecond), caught)
		})
	}
}

// calmFor returns the longest time between two cuts of a host with which a violation shows soon.
// Removing a lock by path harms a holder that was disconnected for a moment; counting heartbeats
// wrongly breaks the lock of a holder that was connected all the time.
func calmFor(v broken.Variant) time.Duration {
	if v.Name == broken.UnlinkByPath {
		return 2 * stressTTL
	}
	return 20 * stressTTL
}

// A sweep must find the faults of a protocol that takes a reply to mean more than it says.
// Rule: none (test of the sweep)
func TestSweepCatchesBrokenVariants(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name      string
		operation string
		fault     stalefs.Outcome
		dir       func(vfs.Dir) vfs.Dir
	}{
		{"a removal without an answer counts as done", "release", stalefs.Dropped, func(d vfs.Dir) vfs.Dir { return hopeful{d} }},
		{"an attempt that got no answer is not taken back", "acquire", stalefs.Zombie, func(d vfs.Dir) vfs.Dir { return careless{d} }},
	} {
		t.Run(v.name, func(t *testing.T) {
			c := newCluster(t, 3, stalefs.Options{})
			found := judge(t, func(t testing.TB) {
				sweep(t, c, broken.FS{Broken: v.dir}, locktest.Operations(v.operation)[0], stalefs.Fault{Outcome: v.fault, Errno: syscall.EIO})
			})
			require.NotEmpty(t, found, "nobody noticed")
			t.Log(found[0])
		})
	}
}

// judge runs checks and returns their failures.
func judge(t testing.TB, checks func(testing.TB)) []string {
	j := &judgement{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		checks(j)
	}()
	<-done
	return j.found
}

// judgement is a test that records failures without failing.
type judgement struct {
	testing.TB
	found []string
}

func (j *judgement) Errorf(format string, args ...any) {
	j.found = append(j.found, fmt.Sprintf(format, args...))
}

func (j *judgement) FailNow() { runtime.Goexit() }

type hopeful struct{ vfs.Dir }

func (d hopeful) Unlink(name string) error {
	err := d.Dir.Unlink(name)
	if errors.Is(err, syscall.EIO) {
		return nil
	}
	return err
}

type careless struct{ vfs.Dir }

// Unlink leaves staged files in place.
func (d careless) Unlink(name string) error {
	if strings.Contains(d.Path(), "/staging/") {
		return nil
	}
	return d.Dir.Unlink(name)
}
