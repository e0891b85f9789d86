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

// A test that cannot fail proves nothing. With a protocol that breaks one of its
// rules the same run has to find two holders at once.
// Rule: none (test of the stress)
func TestBrokenVariantsAreCaught(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Minute // most are caught within seconds, some in a minute
	for _, v := range broken.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s := newStress(t, v.FS(), 0)
			s.calm = calmFor(v)
			start := time.Now()
			s.run(limit)
			caught := s.check()
			require.Error(t, caught, "%s: nobody noticed", v.What)
			t.Logf("after %s: %v", time.Since(start).Round(time.Millisecond), caught)
		})
	}
}

// calmFor is the longest time between two cuts of one host that brings a mistake to
// light soon: a removal by path harms who was away for a moment, and who counts signs
// of life wrongly takes a lock from somebody who was there all the time.
func calmFor(v broken.Variant) time.Duration {
	if v.Name == broken.UnlinkByPath {
		return 2 * stressTTL
	}
	return 20 * stressTTL
}

// A sweep has to find what is wrong with a protocol that takes an answer for more
// than it says.
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

// judge runs checks and gives what they found.
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

// judgement is a test whose failure is no failure.
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

// Unlink does not remove what is staged.
func (d careless) Unlink(name string) error {
	if strings.Contains(d.Path(), "/staging/") {
		return nil
	}
	return d.Dir.Unlink(name)
}
