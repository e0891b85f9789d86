// Package probe asks a batch system, or a command of the user, whether the holder of a lock has ended. Only a
// clear yes counts: an error, a timeout or an answer in an unknown format proves nothing.
package probe

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

const (
	// Slurm is the name of the built-in probe.
	Slurm = "slurm"

	askLimit = 10 * time.Second
	// pause is the minimum time between two questions about one holder, because a batch system serves many
	// hosts.
	pause = 10 * time.Second
	// maxAnswers bounds the cache.
	maxAnswers = 1000
)

// Prober asks about holders, and caches the answers. It is safe for concurrent use.
type Prober struct {
	ask     func(ctx context.Context, r source.Record) (why string, err error)
	say     func(format string, args ...any)
	answers map[string]*answer // by token
	mu      sync.Mutex
}

// answer is the last answer about one holder.
type answer struct {
	evidence process.Evidence
	asked    time.Time // when it arrived
	asking   bool
}

// New returns a prober that asks Slurm, or runs a command with /bin/sh. It reports once per holder why an
// answer was inconclusive.
func New(what string, environ []string, self process.Identity, say func(format string, args ...any)) *Prober {
	run := runner{environ: environ, self: self}
	p := &Prober{say: say, answers: map[string]*answer{}}
	if what == Slurm {
		p.ask = slurm{run.getenv, run.output}.ask
	} else {
		p.ask = command{run, what}.ask
	}
	return p
}

// Ask implements source.Probe. It waits for the first answer about a holder. After that it returns the last
// answer, and asks again in the background, so that a waiter can inspect the lock meanwhile.
func (p *Prober) Ask(ctx context.Context, r source.Record) process.Evidence {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.answers[r.Token]
	switch {
	case a == nil:
		if len(p.answers) >= maxAnswers {
			clear(p.answers)
		}
		a = &answer{asking: true}
		p.answers[r.Token] = a
		p.mu.Unlock()
		p.query(ctx, r, a, true)
		p.mu.Lock()
	case !a.asking && a.evidence.Life != process.Gone && time.Since(a.asked) >= pause:
		a.asking = true
		go p.query(context.WithoutCancel(ctx), r, a, false)
	}
	return a.evidence
}

func (p *Prober) query(ctx context.Context, r source.Record, a *answer, first bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, askLimit, fmt.Errorf("no answer within %s", askLimit))
	defer cancel()
	why, err := p.ask(ctx, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	a.asking, a.asked = false, time.Now()
	switch {
	case err == nil:
		a.evidence = process.Evidence{Life: process.Gone, Why: why}
	case first && !errors.As(err, new(*alive)):
		p.say("--probe is inconclusive about the holder of %q: %v", r.Name, err)
	}
}

// alive is a clear answer that the holder has not ended.
type alive struct{ why string }

func (a *alive) Error() string { return a.why }

// command is the user's command. The record is untrusted: its text is passed in the environment, never in a
// command line.
type command struct {
	run  runner
	text string
}

func (c command) ask(ctx context.Context, r source.Record) (string, error) {
	h := r.Holder
	out, err := c.run.output(ctx, []string{
		"MULTILOCK_NAME=" + r.Name, "MULTILOCK_HOLDER_HOST=" + h.Host, "MULTILOCK_HOLDER_PID=" + strconv.Itoa(h.PID),
		"MULTILOCK_HOLDER_USER=" + h.User, "MULTILOCK_HOLDER_COMMAND=" + h.Command,
		"MULTILOCK_BATCH_SYSTEM=" + h.Batch.System, "MULTILOCK_BATCH_JOB=" + h.Batch.ID,
		"MULTILOCK_BATCH_CLUSTER=" + h.Batch.Cluster, "MULTILOCK_BATCH_NODE=" + h.Batch.Node,
	}, "/bin/sh", "-c", c.text)
	switch answer := strings.TrimSpace(out); {
	case err != nil:
		return "", err
	case answer == "alive":
		return "", &alive{answer}
	case answer != "gone":
		return "", fmt.Errorf("its command printed %q instead of gone or alive", source.Shorten(answer, 100))
	}
	return "the command of --probe reports that it is gone", nil
}
