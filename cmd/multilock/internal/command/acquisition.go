package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// holding has the options of all commands that hold a lock.
type holding struct {
	probing
	TTL, MaxAge, Poll console.Duration
	Fair, Shared      bool
}

// useTTL applies the configured TTL unless the option was given.
func (h *holding) useTTL(p *place.Place) {
	if !h.TTL.Given {
		h.TTL.Value = p.UsualTTL()
	}
}

// checkName rejects --shared for a lock whose name does not end in ".shared".
func (h *holding) checkName(command, name string) error {
	if !h.Shared || multilock.Shareable(name) {
		return nil
	}
	return console.Usagef(command, "--shared: the name must end in .shared, so that an exclusive holder looks for readers; use -n %s.shared for both", strings.TrimSuffix(name, "."))
}

// options returns the lock's options, including the probe and the batch job that this process belongs to. It
// calls say if a probe is inconclusive.
func (h *holding) options(e *Env, src *place.Source, command string, say func(string, ...any)) (_ multilock.Options, err error) {
	opt := multilock.Options{
		TTL: h.TTL.Value, Poll: h.Poll.Value, StalePolicy: multilock.StalePolicy{MaxAge: h.MaxAge.Value}, Fair: h.Fair, User: src.Place.User, Batch: source.BatchJobOf(e.Getenv),
	}
	opt.StalePolicy.Probe, err = h.prober(e, src, command, say)
	return opt, err
}

// acquisition acquires a lock, waiting at most for its limit.
type acquisition struct {
	src    *place.Source
	shared bool
	slots  int // 0 for the lock itself
	opt    multilock.Options
	terms  func(multilock.Options) multilock.Terms
	limit  console.WaitLimit
	token  string // of the lock that protects this process, if it runs as a job
	// notice reports the wait until stop is called.
	notice func(context.Context, show.NoticeText) (stop func())
}

// acquisition prepares to acquire the lock of the source's place.
func (h *holding) acquisition(e *Env, src *place.Source, command string, out console.Output, say func(string, ...any)) (a acquisition, err error) {
	a = acquisition{src: src, shared: h.Shared, token: e.Getenv("MULTILOCK_TOKEN")}
	a.notice = func(ctx context.Context, text show.NoticeText) (stop func()) {
		return show.StartNotice(ctx, e.Env, out, text)
	}
	a.opt, err = h.options(e, src, command, say)
	return a, err
}

// requireIf rejects an option or command that needs the ability T if the source lacks it.
func requireIf[T any](given bool, src *place.Source, command string, trait source.Trait) error {
	if !given {
		return nil
	}
	_, err := place.Ability[T](src, command, trait)
	return err
}

// acquire acquires the lock or a slot, and returns the slot's number, 0 for the lock.
func (a acquisition) acquire(ctx context.Context) (*multilock.Lock, int, error) {
	switch {
	case a.slots > 0:
		return a.acquireSlot(ctx)
	case a.shared:
		lock, err := a.acquireBy(ctx, multilock.TryAcquireShared, multilock.AcquireShared)
		return lock, 0, err
	}
	lock, err := a.acquireBy(ctx, multilock.TryAcquire, multilock.Acquire)
	return lock, 0, err
}

// acquireFenced acquires the lock, and returns its fencing token.
func (a acquisition) acquireFenced(ctx context.Context) (*multilock.Lock, uint64, error) {
	lock, _, err := a.acquire(ctx)
	if err != nil {
		return nil, 0, err
	}
	fence, err := fenceOf(ctx, lock)
	if err != nil {
		return nil, 0, errors.Join(err, lock.Release(context.WithoutCancel(ctx)))
	}
	return lock, fence, nil
}

// fenceOf returns the lock's fencing token, 0 if the source has none.
func fenceOf(ctx context.Context, lock *multilock.Lock) (uint64, error) {
	fence, err := lock.Fence(ctx)
	switch {
	case err == nil:
		return fence, nil
	case errors.Is(err, multilock.ErrUnsupported):
		return 0, nil
	}
	return 0, fmt.Errorf("nothing was done under the lock, for want of a fencing number: %w", err)
}

func (a acquisition) acquireSlot(ctx context.Context) (*multilock.Lock, int, error) {
	acquire := lockgroup.TryAcquireSlot
	if a.limit.Waits() {
		acquire = lockgroup.AcquireSlot
		var cancel context.CancelFunc
		ctx, cancel = a.limit.Limited(ctx)
		defer cancel()
		defer a.notice(ctx, a.slotHolders)()
	}
	slot, err := acquire(ctx, a.src.Locks, a.src.Place.Name, a.slots, a.terms(a.opt))
	if err != nil {
		return nil, 0, err
	}
	return slot.Lock, slot.Number, nil
}

// slotHolders is the notice while a command waits for a slot.
func (a acquisition) slotHolders(ctx context.Context, waited time.Duration) string {
	names, err := a.src.Locks.Names(ctx)
	if err != nil {
		return ""
	}
	text := fmt.Sprintf("waiting for one of the %d slots of %q, %s so far", a.slots, a.src.Place.Name, console.Short(waited))
	var hosts []string
	for _, lock := range names {
		of, i, ok := lockgroup.ParseSlotName(lock)
		if !ok || of != a.src.Place.Name || i > a.slots || len(hosts) == show.Most {
			continue
		}
		if seen, err := multilock.Inspect(ctx, a.src.Locks, lock, multilock.StalePolicy{}); err == nil && seen.State != multilock.StateFree {
			hosts = append(hosts, fmt.Sprintf("slot %d by %s", i, seen.Record.Holder))
		}
	}
	if len(hosts) == 0 {
		return text
	}
	return text + "; held: " + strings.Join(hosts, ", ")
}

// acquiring is a function that acquires a lock.
type acquiring func(context.Context, multilock.Source, string, multilock.Terms) (*multilock.Lock, error)

// acquireBy acquires the lock with wait if there is a limit, otherwise with try.
func (a acquisition) acquireBy(ctx context.Context, try, wait acquiring) (*multilock.Lock, error) {
	if !a.limit.Waits() {
		lock, err := try(ctx, a.src.Locks, a.src.Place.Name, a.terms(a.opt))
		var held *multilock.HeldError
		if errors.As(err, &held) && a.isOurs(held.Observation.Record) {
			held.Observation.Why += "; this command runs under that lock"
		}
		return lock, a.src.IfLasting(err)
	}
	a.opt.Refuse = func(r source.Record) error {
		if a.isOurs(r) {
			return &console.CodedError{Code: console.ExitFailure, Text: fmt.Sprintf("lock %q is held by %s, and this command runs under that lock: the wait would never end; leave the lock out here, or choose another name", a.src.Place.Name, r.Holder)}
		}
		return nil
	}
	ctx, cancel := a.limit.Limited(ctx)
	defer cancel()
	way := &show.Obstacle{Src: a.src, Name: a.src.Place.Name, Self: a.src.Self}
	a.opt.Trouble = way.Met
	defer a.notice(ctx, way.Tell)()
	lock, err := wait(ctx, a.src.Locks, a.src.Place.Name, a.terms(a.opt))
	return lock, a.src.IfLasting(err)
}

// isOurs reports whether this command runs under the lock: the holder is an ancestor of this process, or
// passed it the token, as to a job. A multithreaded ancestor does not count unless it holds the lock for a
// job: it may release the lock while this command waits.
func (a acquisition) isOurs(r source.Record) bool {
	if a.token != "" && a.token == r.Token {
		return true
	}
	return r.Holder.PID > 0 && r.Holder.Judge(a.src.Self).Life == process.Alive && isAncestor(r.Holder.PID, r.Job)
}
