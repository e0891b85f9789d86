package fslock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
)

// prepareNoGroup leaves what an earlier barrier does.
func prepareNoGroup(p *player) error {
	return errors.Join(prepareBase(p), os.Remove(filepath.Join(p.src.Base(), fslock.DefaultGroup)))
}

// prepareEmpty leaves what a crash in the middle of a release does.
func prepareEmpty(p *player) error {
	return errors.Join(prepareBase(p), os.Mkdir(filepath.Join(p.src.Base(), fslock.DefaultGroup, sweptName), 0o777))
}

func playVacant(p *player) (err error) {
	p.vacant, err = p.src.Vacant(context.Background())
	return err
}

func playTidy(p *player) error { return p.src.Tidy(context.Background(), sweptName) }

// requireVacancy: nothing is held, and only a client that lies can hide it. What
// this source has open is no obstacle to its next lock.
func requireVacancy(t *testing.T, o struck) {
	t.Helper()
	require.True(t, o.vacant || o.err != nil || o.lie)
	requireVacant(t, o.src, true)
	require.NoError(t, o.compete(o.src, sweptClaim()))
	requireVacant(t, o.src, false)
	require.NoError(t, o.release())
}

// requireNoVacancy: whatever fails, and whatever a cache answers, what is held is
// not overlooked.
func requireNoVacancy(t *testing.T, o struck) {
	t.Helper()
	require.False(t, o.vacant)
	require.True(t, o.held(t))
	require.NoError(t, o.renew())
	require.NoError(t, o.release())
	requireVacant(t, o.src, true)
}

func requireTidied(t *testing.T, o struck) {
	t.Helper()
	if o.err == nil && !o.lie {
		requireVacant(t, o.src, true)
	}
	require.NoError(t, o.src.Tidy(t.Context(), sweptName))
	requireVacant(t, o.src, true)
}
