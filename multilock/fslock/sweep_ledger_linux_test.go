package fslock_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// prepareFailure holds a lock whose job has failed once.
func prepareFailure(p *player) error { return p.prepareResult(3) }

// prepareSuccess holds a lock whose job has succeeded.
func prepareSuccess(p *player) error { return p.prepareResult(0) }

func (p *player) prepareResult(exit int) error {
	if err := p.compete(p.plain, sweptClaim()); err != nil {
		return err
	}
	p.before = p.lease.Record().Token
	err := committer(p.lease).Commit(context.Background(), ended(p.lease.Record(), 1, exit))
	if err := errors.Join(err, p.release()); err != nil {
		return err
	}
	p.beliefs = nil
	return prepareHold(p)
}

// prepareProbe leaves what a crash in the middle of an Outcome leaves.
func prepareProbe(p *player) error {
	if err := os.MkdirAll(resultPath(p.src.Base()), 0o777); err != nil {
		return err
	}
	return prepareHold(p)
}

func resultPath(base string) string {
	return filepath.Join(base, ".multilock", "groups", fslock.DefaultGroup, "done", sweptName)
}

// What a player reports to have done.
const (
	claimCommitted = "committed"
	claimForgot    = "forgot"
)

func (p *player) commit() error {
	err := committer(p.lease).Commit(context.Background(), ended(p.lease.Record(), 2, 0))
	if err == nil {
		p.claim = claimCommitted
	}
	return err
}

func (p *player) forget() error {
	err := committer(p.lease).Forget(context.Background())
	if err == nil {
		p.claim = claimForgot
	}
	return err
}

// learn reads the outcome; a holder that gets an answer may act on it.
func (p *player) learn() (err error) {
	start := boottime.Now()
	p.learned, err = committer(p.lease).Outcome(context.Background())
	if err == nil || errors.Is(err, source.ErrNoResult) {
		p.believe("learned the outcome", start)
		return nil
	}
	return err
}

// recordedToken is the token of the recorded result, read without the library; "" without a result.
func recordedToken(t *testing.T, base string) string {
	t.Helper()
	info, err := os.Stat(resultPath(base))
	if os.IsNotExist(err) || (err == nil && info.IsDir()) {
		return ""
	}
	require.NoError(t, err)
	data, err := os.ReadFile(resultPath(base))
	require.NoError(t, err)
	var result source.Result
	require.NoError(t, json.Unmarshal(data, &result), "a torn result: %q", data)
	require.NotEmpty(t, result.Token)
	return result.Token
}

func requireCommitted(t *testing.T, o struck) {
	t.Helper()
	require.True(t, o.held(t))
	mine, recorded := o.lease.Record().Token, recordedToken(t, o.base)
	switch {
	case o.err == nil:
		require.Equal(t, mine, recorded)
	case errors.Is(o.err, source.ErrLost):
		require.True(t, o.lie)
		return
	case !errors.Is(o.err, source.ErrUnsure):
		require.Equal(t, o.before, recorded, "what was there before")
	}
	require.NoError(t, o.commit(), "it may be called again")
	require.Equal(t, mine, recordedToken(t, o.base))
	require.NoError(t, o.release())
}

func requireLearned(t *testing.T, o struck) {
	t.Helper()
	require.True(t, o.held(t))
	require.Equal(t, o.before, recordedToken(t, o.base), "asking changes nothing")
	switch {
	case o.err == nil:
		require.Equal(t, o.before, o.learned.Token)
		require.Empty(t, o.learned.Foreign)
	case errors.Is(o.err, source.ErrLost):
		require.True(t, o.lie)
		return
	}
	require.NoError(t, o.learn(), "it may be called again")
	require.Equal(t, o.before, o.learned.Token)
	require.NoError(t, o.release())
}

func requireForgotten(t *testing.T, o struck) {
	t.Helper()
	require.True(t, o.held(t))
	switch {
	case o.err == nil:
		require.Empty(t, recordedToken(t, o.base))
	case errors.Is(o.err, source.ErrLost):
		require.True(t, o.lie)
		return
	case !errors.Is(o.err, source.ErrUnsure):
		require.Equal(t, o.before, recordedToken(t, o.base))
	}
	require.NoError(t, o.forget(), "it may be called again")
	require.Empty(t, recordedToken(t, o.base))
	require.NoError(t, o.release())
}

// requireLedgerWorks checks that the next holder finds no truncated result, and can record its own.
func requireLedgerWorks(t *testing.T, lock *multilock.Lock) {
	t.Helper()
	last, err := lock.Outcome(t.Context())
	if !errors.Is(err, source.ErrNoResult) {
		require.NoError(t, err)
		require.Empty(t, last.Foreign)
	}
	require.NoError(t, lock.Commit(t.Context(), ended(lock.Record(), last.Attempt+1, 0)))
	next, err := lock.Outcome(t.Context())
	require.NoError(t, err)
	require.Equal(t, lock.Record().Token, next.Token)
	require.Equal(t, last.Attempt+1, next.Attempt)
	require.NoError(t, lock.Forget(t.Context()))
	_, err = lock.Outcome(t.Context())
	require.ErrorIs(t, err, source.ErrNoResult)
}

// rival is a process that acquired the lock of a stopped holder.
type rival struct {
	token string        // "" if it had nothing to do
	found source.Result // the outcome that it read
	plays bool
}

// rivalRuns does what a holder does: it reads the outcome, and unless that is a success it runs the job,
// and commits.
func rivalRuns(t *testing.T, s scene, lock *multilock.Lock) rival {
	t.Helper()
	if !s.records {
		return rival{}
	}
	r := rival{plays: true}
	var err error
	r.found, err = lock.Outcome(t.Context())
	if err == nil && r.found.OK() {
		return r
	}
	if !errors.Is(err, source.ErrNoResult) {
		require.NoError(t, err)
	}
	r.token = lock.Record().Token
	require.NoError(t, lock.Commit(t.Context(), ended(lock.Record(), r.found.Attempt+1, 0)))
	return r
}

// requireItsWord checks what the stopped holder has done, and reports, after it has resumed: nothing that
// the rival has seen or committed is gone, or replaced.
func (r rival) requireItsWord(t *testing.T, base, claim string) {
	t.Helper()
	if !r.plays {
		return
	}
	recorded := recordedToken(t, base)
	if r.token != "" {
		require.Equal(t, r.token, recorded)
		require.NotEqual(t, claimCommitted, claim)
		return
	}
	require.Equal(t, r.found.Token, recorded, "a job that was done would run again")
	require.NotEqual(t, claimForgot, claim)
}
