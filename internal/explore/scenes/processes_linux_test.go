package scenes_test

import (
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// aClone is a contender on a host that was copied while it ran, or rebooted: its identity is partly that
// of the other host, and the process that it names does not run here.
func aClone(change func(self *process.Identity, name string)) func(*explore.Actor) {
	return func(a *explore.Actor) {
		self, err := locks.WhoWeAre()
		if err == nil {
			self = locks.OnHost(self, "clone")
			self.PID = noProcess + int(a.Name[0])
			change(&self, a.Name)
		}
		contendsAs(a, fslock.Options{Self: self}, 3)
	}
}

// contendsAs contends with a source of its own.
func contendsAs(a *explore.Actor, opt fslock.Options, signs int) {
	opt.Base, opt.FS, opt.Clock = "/", a, a.Now
	src, err := fslock.Open(opt)
	if err != nil {
		a.World().Violate("open: %v", err)
		return
	}
	c, err := contenderOf(src)
	if err != nil {
		a.World().Violate("contend: %v", err)
		return
	}
	contendsWith(a, c, 0, func(lease source.Lease) { givesSigns(a, lease, signs) })
}

// noProcess is larger than any process number.
const noProcess = 1 << 22

// Copies of a machine share much of its identity, and a rebooted machine may still run elsewhere: nothing is
// known about another machine's processes.
// Rule: process-gone, silence, I1, I3
func TestExploreClones(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*process.Identity, string){
		"booted":  func(self *process.Identity, name string) { self.Boot = "boot " + name },
		"renamed": func(self *process.Identity, name string) { self.Host = "host " + name },
		"copied":  func(self *process.Identity, name string) { self.Machine = "machine " + name },
		"jailed":  func(self *process.Identity, name string) { self.Namespace = "pid:[" + name + "]" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			sc := contest(aClone(change), aClone(change))
			sc.Kinds = []explore.Fate{explore.Crash, explore.Nap}
			explored(t, sc, 1, 0)
		})
	}
}

// asksAProbe uses a probe that reports every holder as gone, and breaks the lock a while after the probe.
func asksAProbe(a *explore.Actor) {
	src, err := locks.Source(a)
	if err != nil {
		a.World().Violate("open: %v", err)
		return
	}
	gone := func(context.Context, source.Record) process.Evidence {
		return process.Evidence{Life: process.Gone, Why: "no such job"}
	}
	o, err := src.Observe(context.Background(), "lock", source.StalePolicy{Probe: gone})
	for range 12 {
		a.Sleep(exploreBeat / 2)
		var seen source.Observation
		if err == nil {
			seen, err = o.Look(context.Background())
		}
		if a.Note("look: %s %v", seen.Why, err); seen.State == source.StateDead {
			a.Sleep(2 * exploreBeat)
			a.Note("break: %v", o.Break(context.Background()))
			return
		}
	}
}

// A holder that misses a heartbeat, and that a probe reports as gone, keeps its lock if it sends a heartbeat
// before the lock is broken.
// Rule: probe, I2
func TestExploreProbe(t *testing.T) {
	t.Parallel()
	sc := contest(func(a *explore.Actor) {
		contendsDoing(a, func(lease source.Lease) {
			a.Sleep(2 * exploreBeat)
			givesSigns(a, lease, 4)
		})
	}, asksAProbe)
	sc.Preemptions, sc.Faults = 0, 0
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// standIn is a real process that proves to be alive until it is ended.
type standIn struct{ cmd *exec.Cmd }

func startStandIn(a *explore.Actor, env ...string) *standIn {
	cmd := exec.CommandContext(context.Background(), "sleep", "1000")
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		a.World().Violate("prepare: %v", err)
		return nil
	}
	return &standIn{cmd}
}

func (s *standIn) end() {
	if s != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// jobFacts are the facts about the job in a schedule.
type jobFacts struct {
	token string
	job   *standIn
	shown bool // by its mark or its environment
}

// runsJob acquires the lock with a process of its own, starts a job and marks it. It crashes in the end,
// at the latest, and its job lives on.
func runsJob(tell string) func(*explore.Actor) {
	return func(a *explore.Actor) {
		f := a.World().Facts.(*jobFacts)
		runner := startStandIn(a)
		defer runner.end()
		self, err := process.Find(runner.cmd.Process.Pid)
		if err != nil {
			a.World().Violate("prepare: %v", err)
			return
		}
		src, err := fslock.Open(fslock.Options{Base: "/", FS: a, Self: locks.OnHost(self, a.Host), Clock: a.Now})
		if err != nil {
			a.World().Violate("open: %v", err)
			return
		}
		claim := locks.Claim
		claim.Job = true
		c, err := src.Contend(context.Background(), "lock", claim, source.StalePolicy{})
		if err != nil {
			a.Note("contend: %v", err)
			return
		}
		lease, err := c.Try(context.Background())
		if a.Note("try: %v", err); err != nil {
			return
		}
		f.token = lease.Record().Token
		var env []string
		if tell != "mark" {
			env = append(env, process.TokenEntry(f.token))
		}
		f.job, f.shown = startStandIn(a, env...), tell != "mark"
		if tell != "environment" {
			group, err := locks.OnHost(self, a.Host).FindGroup(f.job.cmd.Process.Pid)
			marked := lease.MarkJob(context.Background(), group)
			a.Note("mark: %v %v", err, marked)
			f.shown = f.shown || err == nil && marked == nil
		}
		a.Sleep(exploreBeat)
	}
}

// mayBreak breaks a dead lock, and must not do so while the job of this host lives.
func mayBreak(a *explore.Actor) {
	c, err := contender(a)
	if err != nil {
		a.Note("contend: %v", err)
		return
	}
	f := a.World().Facts.(*jobFacts)
	for range 24 {
		seen, err := c.Look(context.Background())
		a.Note("look: %v %s %v", seen.State, seen.Why, err)
		switch {
		case err == nil && seen.State == source.StateDead && seen.Record.Token == f.token && f.shown:
			a.World().Violate("job: it lives on this host, and its lock counts as dead: %s", seen.Why)
			return
		case err == nil && seen.State == source.StateDead:
			_ = c.Break(context.Background())
		}
		a.Sleep(exploreBeat)
	}
}

// A job outlives its runner. Its host does not acquire the lock as long as the job lives, although the runner
// is gone and has sent no heartbeat for longer than the TTL: whether the job is marked, or only found by
// its environment.
// Rule: job
func TestExploreJob(t *testing.T) {
	if _, err := exec.LookPath("sleep"); err != nil {
		t.Skip("there is no sleep(1) to play a job")
	}
	t.Parallel()
	for _, tell := range []string{"mark", "environment"} {
		t.Run(tell, func(t *testing.T) {
			t.Parallel()
			sc := contest(runsJob(tell), mayBreak)
			sc.Actors[0].Host, sc.Actors[1].Host = "one", "one"
			last := &jobFacts{}
			sc.Facts = func() any {
				last.job.end()
				last = &jobFacts{}
				return last
			}
			t.Cleanup(func() { last.job.end() })
			sc.Owns, sc.AtEnd, sc.Remember = nil, nil, false
			sc.Kinds, sc.Preemptions, sc.Faults = []explore.Fate{explore.Crash}, 0, 1
			proven(t, sc.Exhaust(t, 10*time.Minute))
			sc.Preemptions, sc.Faults = 1, 0 // another actor looks while the mark is written
			proven(t, sc.Exhaust(t, 10*time.Minute))
		})
	}
}
