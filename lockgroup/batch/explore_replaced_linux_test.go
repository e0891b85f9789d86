package batch_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/lockgroup/batch"
)

// isReplaced reports whether the server has the list with the new command of job 1.
func isReplaced(w *explore.World) bool {
	for n := range 4 {
		section := w.Server.Content(".multilock/groups/.locks/manifest/more-" + strconv.Itoa(n+1) + "/list")
		if bytes.Contains(section, []byte("\n100\tnew\n")) {
			return true
		}
	}
	return false
}

// replacedFacts are the facts of a list whose first command is replaced.
type replacedFacts struct {
	*listFacts
	command map[*explore.Actor]string // of job 1 while it runs
	ended   string                    // the command of the last run of job 1
}

// runsWhatIsListed checks after each change that no host runs a command that is no longer in the list.
func runsWhatIsListed(w *explore.World) string {
	f := w.Facts.(*replacedFacts)
	f.mu.Lock()
	defer f.mu.Unlock()
	for actor, command := range f.command {
		if command == "old" && isReplaced(w) && !actor.Gone() && f.running[actor].ctx.Err() == nil {
			return "I1: " + actor.Name + " runs a command that was replaced"
		}
	}
	return f.learn(w)
}

func replacedJob(a *explore.Actor, job batch.Job) batch.Job {
	job.Work = func(ctx context.Context, t batch.Attempt) error {
		f := a.World().Facts.(*replacedFacts)
		if !a.Gate("begins a job") || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f.begins(ctx, a, t)
		f.sets(a, t.Seq, t.Command)
		if t.Seq == 1 && t.Command == "old" && isReplaced(a.World()) {
			a.World().Violate("I1: %s begins a command that was replaced", a.Name)
		}
		err := lasts(f.lasts)(ctx, t)
		f.sets(a, t.Seq, "")
		f.ends(a)
		return err
	}
	return job
}

func (f *replacedFacts) sets(a *explore.Actor, job int, command string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case job != 1:
	case command == "":
		f.ended = f.command[a]
		delete(f.command, a)
	default:
		f.command[a] = command
	}
}

// worksOnList returns a host whose list has this first command. It repeats the batch as often as needed. If
// the old list is rejected, the host gets the new one.
func worksOnList(first string) func(*explore.Actor) {
	return func(a *explore.Actor) {
		for command, replace := first, first == "new"; !a.Gone(); {
			err := worksOnCommand(a, command, replace)
			if !a.Gate("has run") {
				return
			}
			a.Note("with %q: %v", command, err)
			if errors.As(err, new(*batch.DoneError)) {
				command, replace = "old", false // another host has replaced the list first
			} else if errors.As(err, new(*batch.ManifestError)) {
				command = "new"
			}
			if err == nil {
				return
			}
			a.Sleep(locks.Beat)
		}
	}
}

func worksOnCommand(a *explore.Actor, first string, replace bool) error {
	src, err := locks.Source(a)
	if err != nil {
		return err
	}
	list := []batch.Job{replacedJob(a, batch.Job{Name: "100", Command: first}), replacedJob(a, batch.Job{Name: "101", Command: "old"})}
	opt := batch.Options{TTL: locks.TTL, Replace: replace, Follow: func(job batch.Job) batch.Job { return replacedJob(a, job) }}
	b, err := batch.New(src, list, opt)
	if err != nil {
		return err
	}
	b.LeaveNothingToChance(drawn())
	_, err = b.Run(a.Context())
	return err
}

// One host replaces a command of a list on which the other one works, and either may die or be suspended.
// Rule: replace, I1, I3
func TestExploreListReplaced(t *testing.T) {
	t.Parallel()
	sc := listOf(2, worksOnList("new"), worksOnList("old"))
	facts, prepare := sc.Facts, sc.Prepare
	sc.Facts = func() any {
		return &replacedFacts{listFacts: facts().(*listFacts), command: map[*explore.Actor]string{}}
	}
	sc.Prepare = func(a *explore.Actor) {
		if prepare(a); a.Name != "A" {
			return
		}
		src, err := locks.Source(a)
		if err == nil {
			_, err = src.Publish(context.Background(), []byte("#chunks of 64, or a share of 4\n100\told\n101\told\n"))
		}
		if err != nil {
			a.World().Violate("prepare: %v", err)
		}
	}
	sc.Always = runsWhatIsListed
	sc.AtEnd = func(w *explore.World) {
		f := w.Facts.(*replacedFacts)
		f.learn(w)
		living := false
		for _, a := range w.Actors() {
			living = living || !a.Crashed
		}
		switch {
		case living && !f.allDone():
			w.Violate("I3: all have ended, and recorded is %v", f.recorded)
		case living && isReplaced(w) && f.ended != "new":
			w.Violate("I7: the list has a new command, and the job ended with the old one")
		}
	}
	playedThrough(t, sc, explore.Crash, explore.Pause)
}
