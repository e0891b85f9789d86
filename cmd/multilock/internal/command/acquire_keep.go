package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// KeepCommand is the keeper of "acquire", which starts it; people do not.
const KeepCommand = "__keep"

// Keep is the keeper of acquire, which starts it; people do not.
func Keep(e *Env) *cli.Command {
	return &cli.Command{
		Name: KeepCommand, Hidden: true, Usage: "hold a lock for acquire",
		Action: func(c *cli.Context) error { return runKeep(c.Context, e) },
	}
}

// runKeep acquires the lock it is told to, answers, and holds it until its owner
// ends, it is asked to end, or somebody took the lock away: released it with
// its token, mostly.
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
	defer func() { _ = src.Close(nil) }() // the end of the process
	if err := errors.Join(src.Require("acquire", source.TraitPromptRelease), requireQueue(src, "acquire", order.Fair)); err != nil {
		return answer(e, keepAnswer{}, err)
	}
	if !order.Silent {
		src.TellOneHost(func(format string, args ...any) { _ = answerLine(e, keepAnswer{Say: fmt.Sprintf(format, args...)}) })
	}
	lock, err := order.acquire(ctx, e, src, in)
	if err != nil {
		return answer(e, keepAnswer{}, &place.LocatedError{Place: order.Place, Err: err})
	}
	opt := multilock.Options{User: order.Place.User, Command: describeOwner(order.Owner)}
	fence, err := fenceOf(ctx, lock)
	if err != nil {
		return answer(e, keepAnswer{}, &place.LocatedError{Place: order.Place, Err: errors.Join(err, lock.Release(context.WithoutCancel(ctx)))})
	}
	_ = src.Note(ctx, acquiredEvent(lock, opt, fence, 0))
	start := time.Now()
	if err := answer(e, keepAnswer{Token: lock.Record().Token, Fence: fence}, nil); err != nil {
		return errors.Join(err, lock.Release(context.WithoutCancel(ctx)))
	}
	why, before := hold(ctx, lock, order.Owner, src.Self), time.Now()
	err = lock.Release(context.WithoutCancel(ctx))
	if err == nil || errors.Is(err, multilock.ErrLost) && order.Owner.Judge(src.Self).Life == process.Gone {
		// It was given back, or somebody was faster to see that the script has ended.
		event := acquiredEvent(lock, opt, fence, 0)
		event.Time, event.What, event.Held, event.Why = before, source.EventReleased, before.Sub(start), why
		_ = src.Note(context.WithoutCancel(ctx), event)
	}
	return nil // whoever could be told anything is gone
}

// acquire gives up when the standard input ends before there is an answer.
func (k keepOrder) acquire(ctx context.Context, e *Env, src *place.Source, in io.Reader) (*multilock.Lock, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel(errParentGone)
	}()
	opt := multilock.Options{
		TTL: k.TTL, Poll: k.Poll, Fair: k.Fair, Patience: multilock.Patience{MaxAge: k.MaxAge}, Owner: k.Owner, User: k.Place.User, Command: describeOwner(k.Owner),
		Batch: source.BatchJobOf(e.Getenv),
	}
	say := func(format string, args ...any) { _ = answerLine(e, keepAnswer{Say: fmt.Sprintf(format, args...)}) }
	var err error
	if opt.Patience.Probe, err = (&probing{k.Probe}).prober(e, src, "acquire", say); err != nil {
		return nil, err
	}
	return (&sharing{k.Shared}).take(ctx, e, src, k.Place.Name, opt, k.Wait, console.Output{Quiet: true})
}

// answer tells acquire how it went, and lets go of it: nobody should have to wait
// for the end of a pipe that a keeper holds.
func answer(e *Env, a keepAnswer, err error) error {
	if err != nil {
		a.Code, a.Error = console.ExitCode(err), show.Explain(err)
	}
	return errors.Join(answerLine(e, a), e.Stdout.Close())
}

func answerLine(e *Env, a keepAnswer) error {
	if err := json.NewEncoder(e.Stdout).Encode(a); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// hold returns when the lock is to be released, or is lost.
func hold(ctx context.Context, lock *multilock.Lock, owner, self process.Identity) string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(lock.Context(), cancel)()
	if err := owner.Wait(ctx, self); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("process %d ended", owner.PID)
}
