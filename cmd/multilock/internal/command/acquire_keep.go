package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// KeepCommand is the hidden command that "acquire" starts as the keeper.
const KeepCommand = "__keep"

// Keep holds a lock for a script.
func Keep(e *Env) *cli.Command {
	return &cli.Command{
		Name: KeepCommand, Hidden: true, Usage: "hold a lock for acquire",
		Action: func(c *cli.Context) error { return runKeep(c.Context, e) },
	}
}

// runKeep acquires the lock of its order, replies, and holds it until the owner ends, a signal arrives, or
// the lock is lost, usually because it was released with its token. It gives up unless acquire confirms that
// the token was delivered.
func runKeep(ctx context.Context, e *Env) error {
	in := bufio.NewReader(e.Stdin)
	order, err := readOrder(in)
	if err != nil {
		return err
	}
	sigs := console.CatchSignals()
	console.OutliveReaders()
	defer sigs.Release()
	ctx = sigs.Until(ctx)
	src, err := e.Kinds.Open(ctx, e.Env, order.Place)
	if err != nil {
		return answer(e, keepAnswer{}, err)
	}
	defer func() { _ = src.Close(nil) }() // the process ends here
	if err := errors.Join(src.Require("acquire", source.TraitPromptRelease), requireIf[source.Queueing](order.Holding.Fair, src, "acquire: --fair", source.TraitQueue)); err != nil {
		return answer(e, keepAnswer{}, err)
	}
	say := func(format string, args ...any) { _ = answerLine(e, keepAnswer{Say: fmt.Sprintf(format, args...)}) }
	if !order.Silent {
		src.WarnOneHost(say)
	}
	a, err := order.Holding.acquisition(e, src, "acquire", console.Output{Quiet: true}, say)
	if err != nil {
		return answer(e, keepAnswer{}, &place.LocatedError{Place: order.Place, Err: err})
	}
	a.opt.Command, a.limit = fmt.Sprintf("acquire for pid %d", order.Owner.PID), order.Wait
	a.terms = func(opt multilock.Options) multilock.Terms {
		return multilock.OnBehalf{Options: opt, Owner: order.Owner}
	}
	waiting, confirmed := listen(ctx, in)
	lock, fence, err := a.acquireFenced(waiting)
	if err != nil {
		return answer(e, keepAnswer{}, &place.LocatedError{Place: order.Place, Err: err})
	}
	start := time.Now()
	if err := answer(e, keepAnswer{Token: lock.Record().Token, Fence: fence}, nil); err != nil || !<-confirmed {
		return errors.Join(err, lock.Release(context.WithoutCancel(ctx)))
	}
	_ = src.Note(ctx, acquiredEvent(lock, fence, 0))
	_ = e.Stdout.Close() // acquire waits for this
	why, before := hold(ctx, lock, order.Owner, src.Self), time.Now()
	err = lock.Release(context.WithoutCancel(ctx))
	if err == nil || errors.Is(err, multilock.ErrLost) && order.Owner.Judge(src.Self).Life == process.Gone && !releaseNoted(src, lock.Record(), start) {
		// The keeper released the lock, or another process broke it because the script had ended.
		event := acquiredEvent(lock, fence, 0)
		event.Time, event.What, event.Held, event.Why = before, source.EventReleased, before.Sub(start), why
		_ = src.Note(context.WithoutCancel(ctx), event)
	}
	return nil // acquire has ended: no process would receive an error
}

// settling is the maximum delay between a release by "multilock release" and its event.
const settling = 2 * time.Second

// releaseNoted reports whether "multilock release" has already recorded the release. Scripts often release
// the lock just before they end.
func releaseNoted(src *place.Source, r source.Record, start time.Time) bool {
	chronicle, ok := src.Locks.(source.Journal)
	if !ok {
		return false
	}
	time.Sleep(settling)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for e, err := range chronicle.History(ctx, start.Add(-time.Hour)) { // margin for clocks of other hosts
		if err != nil {
			return false
		}
		if e.What == source.EventReleased && e.Name == r.Name && e.Token == r.Token {
			return true
		}
	}
	return false
}

// delivered is the line with which acquire confirms that the token was delivered.
const delivered = "delivered\n"

// listen waits for acquire's confirmation. The context ends if acquire ends without confirming.
func listen(ctx context.Context, in *bufio.Reader) (context.Context, <-chan bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	confirmed := make(chan bool, 1)
	go func() {
		line, _ := in.ReadString('\n')
		confirmed <- line == delivered
		if line != delivered {
			cancel(errParentGone)
		}
	}()
	return ctx, confirmed
}

// answer reports the outcome to acquire.
func answer(e *Env, a keepAnswer, err error) error {
	if err != nil {
		a.Code, a.Error = console.ExitCode(err), show.Explain(err)
	}
	return answerLine(e, a)
}

func answerLine(e *Env, a keepAnswer) error {
	if err := json.NewEncoder(e.Stdout).Encode(a); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// hold waits until the lock must be released or is lost, and returns the reason.
func hold(ctx context.Context, lock *multilock.Lock, owner, self process.Identity) string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(lock.Context(), cancel)()
	if err := owner.Wait(ctx, self); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("process %d ended", owner.PID)
}
