// Package probe asks a batch system, or a command of the user's, whether the holder of a lock
// is gone. Only a clear yes is one: an error, a command that takes too long, an answer that is
// not understood prove nothing.
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
	// Slurm is the name of the probe that this package knows itself.
	Slurm = "slurm"

	askLimit = 10 * time.Second
	// pause is the time between two questions about one holder, which others answer for many.
	pause = 10 * time.Second
	// mostAnswers bounds what is remembered.
	mostAnswers = 1000
)

// Prober asks, and remembers the answers. It is safe for concurrent use.
type Prober struct {
	ask     func(ctx context.Context, r source.Record) (why string, err error)
	say     func(format string, args ...any)
	answers map[string]*answer // by token
	mu      sync.Mutex
}

// answer is what is known of one holder.
type answer struct {
	evidence process.Evidence
	asked    time.Time // when the last question was over
	asking   bool
}

// New is a prober of this kind: Slurm, or a command for /bin/sh. It says once about a holder
// why its question came to nothing.
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

// Ask implements source.Probe. The first question about a holder is waited for; after that
// the last answer is given, and a new question asked in the background now and then: who
// waits for a lock has to look at it meanwhile.
func (p *Prober) Ask(ctx context.Context, r source.Record) process.Evidence {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.answers[r.Token]
	switch {
	case a == nil:
		if len(p.answers) >= mostAnswers {
			clear(p.answers)
		}
		a = &answer{asking: true}
		p.answers[r.Token] = a
		p.mu.Unlock()
		p.question(ctx, r, a, true)
		p.mu.Lock()
	case !a.asking && a.evidence.Life != process.Gone && time.Since(a.asked) >= pause:
		a.asking = true
		go p.question(context.WithoutCancel(ctx), r, a, false)
	}
	return a.evidence
}

func (p *Prober) question(ctx context.Context, r source.Record, a *answer, first bool) {
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
		p.say("--probe tells nothing about the holder of %q: %v", r.Name, err)
	}
}

// alive is an answer that was understood, and is no proof.
type alive struct{ why string }

func (a *alive) Error() string { return a.why }

// command is one of the user's. What the record says is another's: it gets into the
// environment, and into no command line.
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
		return "", fmt.Errorf("its command said %q, and neither gone nor alive", source.Shorten(answer, 100))
	}
	return "the command of --probe says that it is gone", nil
}
