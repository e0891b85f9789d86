package cloudshell

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/multilock/go/multilock/source"
)

// The last result of a name is named by the name's register. It is committed by a
// step of that, which succeeds only while the register is the holder's; so nobody
// can take the lock and not see it.

var (
	_ source.Changes   = (*Source)(nil)
	_ source.Committer = (*lease)(nil)
)

// Commit implements source.Committer.
func (l *lease) Commit(ctx context.Context, r source.Result) error {
	return l.during(ctx, func(ctx context.Context) error { return l.explain("commit the result", l.commit(ctx, r)) })
}

// commit writes the pieces first, under an id that nobody knows, and then makes the
// step that names it.
func (l *lease) commit(ctx context.Context, r source.Result) error {
	pieces, err := encodeResult(l.src.brand, r)
	if err != nil {
		return err
	}
	id := newResultID()
	for i, text := range pieces {
		if err := l.src.addOwn(ctx, pieceAlias(l.base, id, i), text); err != nil {
			return notUnsure(err) // nothing names it
		}
	}
	return l.settleResult(ctx, id)
}

// settleResult makes the step to a result, and learns what came of it.
func (l *lease) settleResult(ctx context.Context, id string) error {
	v, err := l.step(ctx, id)
	switch {
	case err == nil:
		l.tidy(ctx, v)
		return nil
	case errors.Is(err, errGone) && v != nil && id != "" && v.top().result == id && v.top().brand == l.src.brand:
		return nil // it was committed before the lock was lost, and is what is recorded
	case errors.Is(err, source.ErrUnsure):
		return l.resolveResult(ctx, id, err)
	}
	return err
}

// resolveResult asks once more what became of a step that is in doubt.
func (l *lease) resolveResult(ctx context.Context, id string, doubt error) error {
	if err := l.resolve(ctx); err != nil {
		if errors.Is(err, errGone) {
			return err
		}
		return doubt
	}
	if l.result == id {
		return nil
	}
	l.doubt = true // the step may still be made, late
	return doubt
}

// addOwn adds a service whose alias only this process knows.
func (s *Source) addOwn(ctx context.Context, alias, text string) error {
	var last error
	for range stepTries {
		last = s.add(ctx, alias, text)
		if last == nil || aliasTaken(last) {
			return nil // the answer to an earlier request was lost
		}
		if final(last) {
			return last
		}
	}
	return last
}

// Forget implements source.Committer.
func (l *lease) Forget(ctx context.Context) error {
	return l.during(ctx, func(ctx context.Context) error { return l.explain("forget the result", l.settleResult(ctx, "")) })
}

// Outcome implements source.Committer. One listing shows the result, and that the
// lock is held.
func (l *lease) Outcome(ctx context.Context) (r source.Result, err error) {
	err = l.during(ctx, func(ctx context.Context) error {
		v, err := l.look(ctx)
		if err == nil {
			err = l.guarded(v)
		}
		if err != nil {
			return l.explain("learn the result", err)
		}
		var there bool
		if r, there = l.src.resultIn(l.Record().Name, v); !there {
			return source.ErrNoResult
		}
		return nil
	})
	return r, err
}

// resultIn reads the result that a register names. One that came with a blueprint is
// none of this reservation's.
func (s *Source) resultIn(name string, v *view) (source.Result, bool) {
	top := v.top()
	if top.result == "" || top.brand != s.brand {
		return source.Result{}, false
	}
	return parseResult(name, v.pieces[top.result]), true
}

// Result implements source.Ledger: one listing.
func (s *Source) Result(ctx context.Context, name string) (source.Result, error) {
	if err := s.CheckName(name); err != nil {
		return source.Result{}, err
	}
	if err := s.needOwners(ctx); err != nil {
		return source.Result{}, err
	}
	for try := 1; ; try++ {
		v, err := s.view(ctx, s.aliasOf(name))
		if err != nil {
			return source.Result{}, opError("read the result", name, err)
		}
		r, ok := s.resultIn(name, v)
		switch {
		case !ok:
			return source.Result{}, source.ErrNoResult
		case r.Foreign == "" || try == stepTries:
			return r, nil
		}
		// Perhaps it was replaced while it was being listed.
	}
}

// needOwners refuses what cannot be done with a model without owners.
func (s *Source) needOwners(ctx context.Context) error {
	plain, err := s.plain(ctx)
	if err != nil || !plain {
		return err
	}
	return opError("keep results", "", fmt.Errorf("%w: %s to write them into; import a model that has one, or name it in the source's URL",
		source.ErrUnsupported, s.noOwner()))
}

// withResults are the locks of the group that have a result, by name.
func (s *Source) withResults(ctx context.Context) (map[string]*view, error) {
	if err := s.needOwners(ctx); err != nil {
		return nil, err
	}
	views, err := s.views(ctx)
	if err != nil {
		return nil, opError("list the results", "", err)
	}
	named := map[string]*view{}
	for base, v := range views {
		name, ok := s.nameOf(base)
		if top := v.top(); ok && top.result != "" && top.brand == s.brand {
			named[name] = v
		}
	}
	return named, nil
}

// Results implements source.Ledger: one listing.
func (s *Source) Results(ctx context.Context) ([]string, error) {
	views, err := s.withResults(ctx)
	return slices.Sorted(maps.Keys(views)), err
}

// Revision implements source.Changes: a hash of which results there are. Each has
// an id of its own.
func (s *Source) Revision(ctx context.Context) (string, error) {
	views, err := s.withResults(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(views)) {
		_, _ = fmt.Fprintf(sum, "%q %s\n", name, views[name].top().result) // a hash takes all
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

var _ source.Journal = (*Source)(nil)

// Record implements source.Journal. Commits are in the history by being results;
// there is no room for anything else, and it is left out.
func (s *Source) Record(context.Context, []source.Event) error { return nil }

// History implements source.Chronicle: the last result of each name, as the event
// of its commit.
func (s *Source) History(ctx context.Context, since time.Time) iter.Seq2[source.Event, error] {
	return source.Retell(func() ([]source.Event, error) { return s.Follow(since).Next(ctx) })
}

// Follow implements source.Journal.
func (s *Source) Follow(since time.Time) source.Follower {
	return &follower{src: s, since: since, seen: map[string]string{}}
}

// follower reads results as they come.
type follower struct {
	src   *Source
	since time.Time
	seen  map[string]string // the id of each name's result
}

// Next implements source.Follower: one listing.
func (f *follower) Next(ctx context.Context) ([]source.Event, error) {
	views, err := f.src.withResults(ctx)
	if err != nil {
		return nil, err
	}
	var events []source.Event
	for name, v := range views {
		id := v.top().result
		if f.seen[name] == id {
			continue
		}
		f.seen[name] = id
		r, ok := f.src.resultIn(name, v)
		if e := source.CommittedEvent(r, r.Start.Add(r.Duration)); ok && r.Foreign == "" && !e.Time.Before(f.since) {
			events = append(events, e)
		}
	}
	slices.SortFunc(events, func(a, b source.Event) int { return a.Time.Compare(b.Time) })
	return events, nil
}

// Close implements source.Follower.
func (f *follower) Close() error { return nil }
