package multilock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
)

// A lock whose name ends in ".shared" can be held by one writer, or by many readers. It consists of
// ordinary locks of the same group: NAME, which a writer holds all the time, and a reader while it enters;
// and a lock for each reader, NAME#reader-1 and so on. See docs/decisions/0015-shared-locks.md.

// sharedSuffix ends the names of locks that can be shared. It is in the name so that every writer looks for
// readers, and only where there may be some.
const sharedSuffix = ".shared"

// readerMark is between a name and the number of a reader, lookMark between a name and the token of a
// process that looks for readers.
const (
	readerMark = "#reader-"
	lookMark   = "#look-"
)

// MaxReaders is the maximum number of readers of a lock.
const MaxReaders = 1000

// Shareable reports whether a lock of that name can be shared: whether the name ends in ".shared". Case is
// ignored, here and among readers: on some filesystems db.Shared is the same lock.
func Shareable(name string) bool {
	runes := []rune(name)
	at := len(runes) - len(sharedSuffix)
	return at > 0 && strings.EqualFold(string(runes[at:]), sharedSuffix)
}

// ReaderName is the name of the lock that reader number i of a lock holds.
func ReaderName(name string, i int) string { return name + readerMark + strconv.Itoa(i) }

// ParseReaderName splits a reader's name. ok is false for any other name.
func ParseReaderName(lock string) (name string, i int, ok bool) {
	at := strings.LastIndex(lock, readerMark)
	if at < 0 || !Shareable(lock[:at]) {
		return "", 0, false
	}
	i, err := strconv.Atoi(lock[at+len(readerMark):])
	if err != nil || i < 1 || ReaderName(lock[:at], i) != lock {
		return "", 0, false
	}
	return lock[:at], i, true
}

// AcquireShared acquires the lock name as one of many readers. It waits until no writer holds the lock, or
// is next to hold it, or until ctx ends. The name must end in ".shared".
//
// Acquire and TryAcquire acquire such a lock as a writer. Once a writer is next, no more readers enter;
// Acquire waits for the readers that have entered, TryAcquire fails. So a steady stream of readers does not
// starve a writer. A dead reader's lock is broken by evidence about that reader, like any lock.
//
// The guarantees are those of any Lock, but Fence is ErrUnsupported. The error is source.ErrInvalid for
// another name, and for a source whose locks cannot be broken by evidence or end by time alone. A reader
// that acquires the lock as a writer waits for itself.
func AcquireShared(ctx context.Context, src Source, name string, t Terms) (*Lock, error) {
	return share(ctx, src, name, t.terms(), wait)
}

// TryAcquireShared acquires the lock name as one of many readers, unless a live writer holds it at this
// moment, even if only while it looks for readers. The error is then a *HeldError. See AcquireShared.
func TryAcquireShared(ctx context.Context, src Source, name string, t Terms) (*Lock, error) {
	return share(ctx, src, name, t.terms(), ifFree)
}

func share(ctx context.Context, src Source, name string, t terms, m mode) (*Lock, error) {
	if err := checkShared(src, name); err != nil {
		return nil, err
	}
	pause := newPacing(src, t.Options, wait).pauses
	if _, err := t.check(m); err != nil {
		return nil, err
	}
	for {
		lock, err := enter(ctx, src, name, t, m)
		if err == nil || !errors.Is(err, errEnteredLate) && !shouldRetry(err, t, m) {
			return lock, err
		}
		if err := bounded.Sleep(ctx, pause.Next()); err != nil {
			return nil, err
		}
	}
}

func shouldRetry(err error, t terms, m mode) bool {
	return (&acquisition{mode: m, terms: t}).shouldRetry(err)
}

func checkShared(src Source, name string) error {
	var why string
	switch {
	case !Shareable(name):
		why = fmt.Sprintf("the name of a lock that can be shared must end in %q, so that exclusive holders know it", sharedSuffix)
	case source.Denies(src, source.TraitPromptRelease):
		why = "locks of this source are over by time, and cannot be shared"
	case source.Denies(src, source.TraitBreakByEvidence):
		why = "this source cannot find out whether a holder is dead: a reader that dies would keep all others out"
	default:
		return nil
	}
	return &source.InvalidError{What: "shared lock", Got: name, Why: why}
}

// errEnteredLate means that the gate was lost before the reader had its lock.
var errEnteredLate = errors.New("it took so long to enter that others may have come in between")

// enter acquires the gate, which is the lock NAME, then a reader's lock under it, and releases the gate. It
// verifies the gate after it has the reader's lock: so every later holder of the gate finds that lock.
func enter(ctx context.Context, src Source, name string, t terms, m mode) (*Lock, error) {
	gate, err := openGate(ctx, src, name, t.Options, m)
	if err != nil {
		return nil, err
	}
	defer dismiss(ctx, gate)
	lock, err := register(ctx, src, name, t)
	if err != nil {
		return nil, err
	}
	if err := gate.Verify(ctx); err != nil {
		dismiss(ctx, lock)
		if errors.Is(err, ErrLost) {
			err = errEnteredLate
		}
		return nil, err
	}
	lock.shared = true
	return lock, nil
}

// dismiss releases a lock that is not needed any more. If that fails, the lock is free after its TTL.
func dismiss(ctx context.Context, lock *Lock) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	giveUp(ctx, lock)
}

// entering begins the command of a reader that holds the gate while it enters.
const entering = "to share the lock: "

// openGate acquires the gate. Even a call that does not wait for a writer waits for other readers that
// enter, though not for longer than they may need.
func openGate(ctx context.Context, src Source, name string, opt Options, m mode) (*Lock, error) {
	opt.Command = entering + opt.command()
	pause := bounded.Pauses{First: firstPause, Limit: DefaultPoll / 2}
	for began := time.Now(); ; {
		gate, err := acquireName(ctx, src, name, opt.terms(), m)
		var held *HeldError
		if m != ifFree || !errors.As(err, &held) || !isEntering(held.Observation) || time.Since(began) > DefaultTTL {
			return gate, err
		}
		if err := bounded.Sleep(ctx, pause.Next()); err != nil {
			return nil, errors.Join(err, held)
		}
	}
}

// isEntering is a hint: it only decides how long to retry.
func isEntering(seen Observation) bool {
	return strings.HasPrefix(seen.Record.Holder.Command, entering)
}

// register acquires the first free reader's lock. The gate ensures that only one process does that at a
// time. It uses a dead reader's lock only if no other is free.
func register(ctx context.Context, src Source, name string, t terms) (*Lock, error) {
	names, err := bounded.Call(ctx, src.Names)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, lock := range names {
		taken[lock] = true
	}
	t.Fair, t.lookFirst = false, false
	for _, m := range []mode{skipInspect, ifFree} {
		for i := 1; i <= MaxReaders; i++ {
			part := ReaderName(name, i)
			if taken[part] != (m == ifFree) {
				continue
			}
			if lock, err := acquireName(ctx, src, part, t, m); !errors.Is(err, ErrHeld) {
				return lock, err
			}
		}
	}
	return nil, &source.InvalidError{What: "shared lock", Got: name, Why: fmt.Sprintf("is shared by %d already, and more cannot", MaxReaders)}
}

// acquireAlone acquires the lock name for one holder; if readers can share the lock, after they have left.
func acquireAlone(ctx context.Context, src Source, name string, t terms, m mode) (*Lock, error) {
	for {
		lock, err := acquireName(ctx, src, name, t, m)
		if err != nil || !Shareable(name) || lock.Timed() {
			return lock, err
		}
		err = awaitReaders(ctx, src, name, t.Options, m, lock)
		if err == nil {
			return lock, nil
		}
		lost := lock.Context().Err() != nil
		dismiss(ctx, lock)
		again := lost && m == wait || shouldRetry(err, t, m)
		if !again || ctx.Err() != nil {
			return nil, err
		}
	}
}

// awaitReaders returns when no reader is left. While the gate is held no reader enters, and the listing
// shows those that have.
func awaitReaders(ctx context.Context, src Source, name string, opt Options, m mode, gate *Lock) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(gate.Context(), func() { cancel(context.Cause(gate.Context())) })()
	readers, err := listReaders(ctx, src, name, opt)
	if err != nil {
		return err
	}
	opt.Command, opt.Fair = "waiting for the readers of "+name, false
	if m == skipInspect {
		m = ifFree // a dead reader would block the lock forever
	}
	if gate.keeper == nil && len(readers) > 0 { // a detached lock has no keeper, but may have to wait here
		defer startKeeper(gate, max(gate.Record().TTL/10, time.Millisecond)).halt()
	}
	for _, reader := range readers {
		part, err := acquireName(ctx, src, reader, opt.terms(), m)
		if err != nil {
			return err
		}
		dismiss(ctx, part)
	}
	if len(readers) == 0 {
		return gate.usable()
	}
	return gate.Verify(ctx) // by a clock that counts suspended time; and the whole TTL begins here
}

// listReaders lists the readers' locks. A listing may come from a cache: it only counts if it shows a lock
// that was acquired for this purpose, after the gate.
func listReaders(ctx context.Context, src Source, name string, opt Options) ([]string, error) {
	mark := name + lookMark + source.NewToken()
	probeOptions := Options{TTL: opt.TTL, Poll: opt.Poll, User: opt.User, Command: "looking for the readers of " + name}
	probe, err := acquireName(ctx, src, mark, probeOptions.terms(), skipInspect)
	if err != nil {
		return nil, err
	}
	defer dismiss(ctx, probe)
	pause := bounded.Pauses{First: firstPause, Limit: DefaultPoll}
	for began := time.Now(); time.Since(began) < probe.Record().TTL; {
		names, err := bounded.Call(ctx, src.Names)
		if err != nil {
			return nil, err
		}
		if readers, fresh := readersIn(names, name, mark); fresh {
			return readers, nil
		}
		if err := bounded.Sleep(ctx, pause.Next()); err != nil {
			return nil, err
		}
	}
	return nil, errors.Join(ErrUnsure, fmt.Errorf("lock %q: the list of locks does not show the lock that was just acquired, so its readers are not known", name))
}

// ReleaseShared releases the reader's lock of name that has this token, for a caller without the Lock, such
// as a script whose lock a keeper renews. It returns the last observation before the release. The error is
// ErrFree if no reader has this token (any more).
func ReleaseShared(ctx context.Context, src Source, name, token string) (Observation, error) {
	if err := checkShared(src, name); err != nil {
		return Observation{}, err
	}
	readers, err := listReaders(ctx, src, name, Options{})
	if err != nil {
		return Observation{}, err
	}
	for _, reader := range readers {
		seen, err := Break(ctx, src, reader, BreakOptions{Token: token, Alive: true})
		if err == nil || !errors.Is(err, ErrHeld) && !errors.Is(err, ErrFree) {
			return seen, err
		}
	}
	return Observation{}, ErrFree
}

// readersIn returns the readers' locks in a listing; fresh reports whether the listing shows the mark.
func readersIn(names []string, name, mark string) (readers []string, fresh bool) {
	for _, lock := range names {
		if of, _, ok := ParseReaderName(lock); ok && strings.EqualFold(of, name) {
			readers = append(readers, lock)
		}
		fresh = fresh || lock == mark
	}
	return readers, fresh
}
