package fslock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/internal/testkit/sweep"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// strike is a scene that another process plays, and the one operation at which that process is killed or
// stopped.
type strike struct {
	Base, Scene string
	How         string // "crash" or "stop"
	N           int
	Phase       faultfs.Phase
}

func (s strike) injector() (faultfs.Injector, error) {
	switch s.How {
	case "crash":
		return faultfs.CrashAt(s.N, s.Phase), nil
	case "stop":
		return faultfs.StopAt(s.N, s.Phase), nil
	}
	return nil, fmt.Errorf("unknown way to strike %q", s.How)
}

// playSweep is the process that is struck. If it survives, it continues to use what it holds as far as it
// knows, and writes a record of that to its output.
func playSweep() error {
	var st strike
	if err := actor.Part(&st); err != nil {
		return err
	}
	s, err := sceneNamed(st.Scene)
	if err != nil {
		return err
	}
	inject, err := st.injector()
	if err != nil {
		return err
	}
	p, err := newPlayer(st.Base, s)
	if err != nil {
		return err
	}
	if err := s.prepare(p); err != nil {
		return err
	}
	p.faulty.Inject(inject)
	_ = s.play(p) // the parent finds out what came of it
	p.faulty.Inject(nil)
	p.goOn()
	if err := json.NewEncoder(os.Stdout).Encode(account{p.beliefs, p.claim}); err != nil {
		return err
	}
	return p.end()
}

// goOn uses the lock like a holder that noticed nothing.
func (p *player) goOn() {
	if p.lease == nil {
		return
	}
	_ = p.renew()
	_ = p.fence()
	_ = p.release()
}

// victim is the test's side of a process that is struck.
type victim struct {
	*actor.Actor
	output bytes.Buffer
}

func startVictim(t *testing.T, st strike) *victim {
	t.Helper()
	v := &victim{Actor: actor.Prepare(t, "sweep", st)}
	v.Stdout = &v.output
	v.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its job is its own process group
	v.Start(t)
	return v
}

// account is what a process reports of itself in the end.
type account struct {
	Beliefs []belief
	Claim   string // what it reports to have done with the result
}

// goOn resumes a stopped process, and returns its account when it has ended.
func (v *victim) goOn(t *testing.T) (told account) {
	t.Helper()
	v.GoOn(t)
	require.NoError(t, json.Unmarshal(v.output.Bytes(), &told))
	return told
}

// A holder, contender, breaker or janitor that is killed leaves nothing that blocks a later contender, or
// that a person has to clean up: on the same host at once, on others when the TTL has passed.
// Rule: I3, commit, outcome, forget, manifest, add
func TestCrashAtEveryOperation(t *testing.T) {
	slots := make(sweep.Slots, 24)
	sweep.SideBySide(t, swept(), func(t *testing.T, s scene) {
		for _, phase := range sweep.Phases() {
			sweep.Operations(t, 8, func(t *testing.T, n int) bool {
				defer slots.Enter()()
				return runAndCrash(t, s, n, phase)
			})
		}
	})
}

func runAndCrash(t *testing.T, s scene, n int, phase faultfs.Phase) (ended bool) {
	base := fresh(t)
	child := startVictim(t, strike{Base: base, Scene: s.name, How: "crash", N: n, Phase: phase})
	ended = child.Await(t) != actor.Killed
	err := child.Wait()
	if ended {
		require.NoError(t, err)
	}
	for _, who := range views(t) {
		place := fresh(t)
		copyTree(t, base, place)
		lock := take(t, place, s, who)
		if s.records {
			requireLedgerWorks(t, lock)
		}
		if s.lists != nil {
			other := open(t, fslock.Options{Base: place, FS: sharedFS(), Self: who})
			require.Contains(t, s.lists, listThere(t, other))
			require.NoError(t, other.Retract(t.Context()))
		}
		giveBack(t, lock)
		requireTidy(t, place)
	}
	return ended
}

// copyTree copies directories and files with their modes and times.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	var copied []func() // times last: making a file changes its directory's
	require.NoError(t, filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, path[len(from):])
		copied = append(copied, func() { require.NoError(t, os.Chtimes(target, info.ModTime(), info.ModTime())) })
		if e.IsDir() {
			return os.MkdirAll(target, 0o777)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, info.Mode())
	}))
	for _, setTimes := range copied {
		setTimes()
	}
}

// A process that is suspended for longer than its TTL, at any operation, has lost its lock to a contender
// on another host. When it resumes it must neither trust its lock, nor harm the new holder's.
// Rule: I1, I2, stopped, commit, outcome, forget
func TestStopAtEveryOperation(t *testing.T) {
	slots := make(sweep.Slots, 24)
	sweep.SideBySide(t, stoppable(), func(t *testing.T, s scene) {
		for _, phase := range sweep.Phases() {
			sweep.Operations(t, 8, func(t *testing.T, n int) bool {
				defer slots.Enter()()
				return runAndStop(t, s, n, phase)
			})
		}
	})
}

// stoppable are the scenes in which there is a lock to lose most of the time. The first use of a base
// directory takes a lock only in its last steps, which are those of every other acquisition. Manifests need
// no lock.
func stoppable() []scene {
	return slices.DeleteFunc(swept(), func(s scene) bool { return !sweep.Exhaustive() && (s.name == "first acquire" || s.lists != nil) })
}

func runAndStop(t *testing.T, s scene, n int, phase faultfs.Phase) (ended bool) {
	base := fresh(t)
	child := startVictim(t, strike{Base: base, Scene: s.name, How: "stop", N: n, Phase: phase})
	if child.Await(t) != actor.Stopped {
		require.NoError(t, child.Wait())
		return true
	}
	stopped := boottime.Now()
	lock := take(t, base, s, elsewhere(t))
	taken := sinceBoot()
	number, err := lock.Fence(t.Context())
	require.NoError(t, err)
	r := rivalRuns(t, s, lock)
	// It is stopped for longer than any lock can have been valid.
	time.Sleep(sweptTTL + sweptWindow - stopped.Elapsed())

	told := child.goOn(t)
	r.requireItsWord(t, base, told.Claim)
	next, err := lock.Fence(t.Context())
	require.NoError(t, err)
	require.Greater(t, next, number)
	require.Equal(t, lock.Record().Token, tokenOnDisk(t, base))
	given := sinceBoot()
	giveBack(t, lock)
	requireNoOverlap(t, told.Beliefs, taken, given)
	requireTidy(t, base)
	return false
}

// requireNoOverlap checks that no belief overlaps the time from taken until given, in which another process
// certainly held the lock.
func requireNoOverlap(t *testing.T, beliefs []belief, taken, given time.Duration) {
	t.Helper()
	for i, b := range beliefs {
		till := b.Till
		if i+1 < len(beliefs) {
			till = min(till, beliefs[i+1].At)
		}
		overlap := min(till, given) - max(b.At, taken)
		require.LessOrEqual(t, overlap, time.Duration(0), "%s, while another held the lock from %s until %s", b, taken, given)
	}
}
