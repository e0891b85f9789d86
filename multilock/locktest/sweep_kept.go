package locktest

import (
	"errors"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// keptOperations are those on what a source stores beside its locks.
func keptOperations() []Operation {
	return []Operation{
		{"commit", (*Bench).hold, (*Bench).commit, (*Bench).checkCommitted},
		{"commit again", (*Bench).failOnce, (*Bench).commit, (*Bench).checkCommitted},
		{"forget", (*Bench).failOnce, (*Bench).forget, (*Bench).checkForgotten},
		{"learn the outcome", (*Bench).failOnce, (*Bench).learn, (*Bench).checkKept},
		{"publish", func(*Bench) {}, (*Bench).publish, (*Bench).checkPublished},
		{"retract", func(b *Bench) { require.NoError(b, b.publish()) }, (*Bench).retract, (*Bench).checkRetracted},
		{"record", func(*Bench) {}, (*Bench).record, (*Bench).checkRecorded},
		{"read", (*Bench).prepareReading, (*Bench).read, (*Bench).checkKept},
	}
}

func (b *Bench) mark() error { return b.lease.MarkJob(b.ctx, process.Group{PGID: 4711}) }

// checkMarked: a late request does not restore the earlier job's mark.
func (b *Bench) checkMarked(err error) {
	b.Helper()
	require.NotErrorIs(b, err, source.ErrLost)
	require.NoError(b, b.lease.MarkJob(b.ctx, process.Group{PGID: 4712}))
	b.Land()
	seen, err := multilock.Inspect(b.ctx, b.Other, b.Name, source.StalePolicy{})
	require.NoError(b, err)
	require.Equal(b, 4712, seen.Record.Groups[0].PGID)
	b.checkHeld(nil)
}

func (b *Bench) committer() source.Committer { return b.lease.(source.Committer) } //nolint:forcetypeassert // or the operation is not for this source

func (b *Bench) result(exit int) source.Result {
	record := b.lease.Record()
	return source.Result{
		Name: b.Name, Token: record.Token, By: record.Holder.Identity, Command: strings.Repeat("make all ", 30), Exit: exit, Attempt: 1 + exit,
		Start: time.Unix(1700000000, 0).UTC(), Duration: time.Minute,
	}
}

func (b *Bench) failOnce() {
	b.hold()
	require.NoError(b, b.committer().Commit(b.ctx, b.result(1)))
}

func (b *Bench) commit() error { return b.committer().Commit(b.ctx, b.result(0)) }
func (b *Bench) forget() error { return b.committer().Forget(b.ctx) }

// learn reads the outcome. A wrong answer is worse than none.
func (b *Bench) learn() error {
	found, err := b.committer().Outcome(b.ctx)
	require.NotErrorIs(b, err, source.ErrNoResult)
	if err == nil {
		require.Equal(b, b.result(1), found)
	}
	return err
}

func (b *Bench) checkKept(err error) {
	b.Helper()
	require.NotErrorIs(b, err, source.ErrLost)
	b.requireResult(b.result(1))
	b.checkHeld(nil)
}

// again repeats an operation that ended with an error. The lock must not have been reported lost.
func (b *Bench) again(err error, do func() error) {
	b.Helper()
	require.NotErrorIs(b, err, source.ErrLost)
	if err != nil {
		require.NoError(b, do(), "it may be called again after: %v", err)
	}
	b.land(true)
}

func (b *Bench) requireResult(want source.Result) {
	b.Helper()
	found, err := b.Other.(source.Ledger).Result(b.ctx, b.Name) //nolint:forcetypeassert // as above
	require.NoError(b, err)
	require.Equal(b, want, found)
}

// checkCommitted: a late request does not bring the earlier attempt back.
func (b *Bench) checkCommitted(err error) {
	b.Helper()
	b.again(err, b.commit)
	b.requireResult(b.result(0))
	require.NoError(b, b.committer().Commit(b.ctx, b.result(2)))
	b.land(false)
	b.requireResult(b.result(2))
	b.checkHeld(nil)
	b.requireResult(b.result(2))
}

// checkForgotten: a late request does not remove what was committed since.
func (b *Bench) checkForgotten(err error) {
	b.Helper()
	b.again(err, b.forget)
	_, err = b.Other.(source.Ledger).Result(b.ctx, b.Name) //nolint:forcetypeassert // as above
	require.ErrorIs(b, err, source.ErrNoResult)
	require.NoError(b, b.commit())
	b.land(false)
	b.requireResult(b.result(0))
	b.checkHeld(nil)
}

func (b *Bench) manifests() source.ManifestStore { return b.Struck.(source.ManifestStore) } //nolint:forcetypeassert // as above

func (b *Bench) publish() error {
	got, err := b.manifests().Publish(b.ctx, []byte("one\techo 1\n"))
	if err == nil {
		require.Equal(b, "one\techo 1\n", string(got))
	}
	return err
}

func (b *Bench) retract() error { return b.manifests().Retract(b.ctx) }

// checkPublished: no other manifest replaces it. A source that only stores a hash rejects another one.
func (b *Bench) checkPublished(err error) {
	b.Helper()
	b.again(err, b.publish)
	b.land(false)
	require.NoError(b, b.publish())
	got, err := b.Other.(source.ManifestStore).Publish(b.ctx, []byte("another list\n")) //nolint:forcetypeassert // as above
	if !errors.Is(err, source.ErrInvalid) {
		require.NoError(b, err)
		require.Equal(b, "one\techo 1\n", string(got))
	}
}

func (b *Bench) checkRetracted(err error) {
	b.Helper()
	b.again(err, b.retract)
	b.land(false)
	_, err = b.Other.(source.ManifestStore).Publish(b.ctx, []byte("another list\n")) //nolint:forcetypeassert // as above
	require.NoError(b, err)
}

func (b *Bench) record() error {
	event := source.Event{Time: time.Now(), What: source.EventAcquired, Name: b.Name}
	return b.Struck.(source.Journal).Record(b.ctx, []source.Event{event}) //nolint:forcetypeassert // as above
}

func (b *Bench) checkRecorded(err error) {
	b.Helper()
	found, told := source.Collect(b.Other.(source.Journal).History(b.ctx, time.Time{})) //nolint:forcetypeassert // as above
	require.NoError(b, told)
	require.True(b, err != nil || len(found) > 0)
	b.Land()
	require.NoError(b, b.record())
}

func (b *Bench) prepareReading() {
	b.failOnce()
	var err error
	b.revision, err = b.Other.(source.Ledger).Revision(b.ctx) //nolint:forcetypeassert // as above
	require.NoError(b, err)
}

// read calls every reading method. A wrong answer is worse than none.
func (b *Bench) read() error {
	src := b.Struck.(source.Ledger) //nolint:forcetypeassert // as above
	names, named := src.Names(b.ctx)
	require.True(b, named != nil || len(names) == 1, names)
	names, listed := src.Results(b.ctx)
	require.True(b, listed != nil || len(names) == 1, names)
	empty, asked := b.Struck.(source.Group).Empty(b.ctx) //nolint:forcetypeassert // as above
	require.True(b, asked != nil || !empty)
	revision, stamped := src.Revision(b.ctx)
	require.True(b, stamped != nil || revision == b.revision, revision)
	found, read := src.Result(b.ctx, b.Name)
	require.NotErrorIs(b, read, source.ErrNoResult)
	require.True(b, read != nil || found.Exit == 1, "%v", found)
	seen, looked := multilock.Inspect(b.ctx, b.Struck, b.Name, source.StalePolicy{})
	require.True(b, looked != nil || seen.State == source.StateHeld, seen)
	return errors.Join(named, listed, asked, stamped, read, looked)
}
