//go:build unix

package main

import (
	"context"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// private is a source in which some locks are another user's: they can be seen, and
// neither taken nor broken, as in a directory with the sticky bit.
type private struct {
	multilock.Source
	names map[string]bool
}

func (p private) Contend(ctx context.Context, name string, claim source.Claim, patience multilock.Patience) (source.Contender, error) {
	if p.names[name] {
		return nil, &fs.PathError{Op: "rename", Path: name, Err: fs.ErrPermission}
	}
	return p.Source.Contend(ctx, name, claim, patience)
}

func (p private) Observe(ctx context.Context, name string, patience multilock.Patience) (source.Observer, error) {
	o, err := p.Source.Observe(ctx, name, patience)
	if err != nil || !p.names[name] {
		return o, err
	}
	return privateObserver{o, name}, nil
}

type privateObserver struct {
	source.Observer
	name string
}

func (o privateObserver) Break(context.Context) error {
	return &fs.PathError{Op: "unlink", Path: o.name, Err: fs.ErrPermission}
}

// The seat of another user who died is left alone: there are more, and nobody is to be
// kept from a meeting by what only its owner may clear away.
func TestJoinBesideADeadUsersSeat(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	pace := quickly(2)
	dead := hostIn(t, base, "omega")
	deadIn(t, dead, 100*time.Millisecond, seatName(1))
	require.Eventually(t, func() bool {
		seen, err := multilock.Inspect(t.Context(), dead.locks, seatName(1), multilock.Patience{})
		return err == nil && seen.State != multilock.StateHeld
	}, watchdog, poll)
	hosts := hostsIn(t, base, "alpha", "beta")
	for _, src := range hosts {
		src.locks = private{src.locks, map[string]bool{seatName(1): true}}
	}
	for _, a := range gather(t.Context(), pace, hosts...) {
		require.NoError(t, a.err)
		require.Greater(t, a.place, 1)
		require.Equal(t, "fine join", a.severities()[len(a.severities())-1], a.text())
	}
	require.Equal(t, []string{seatName(1)}, namesIn(t, filepath.Join(base, ".locks")), "all else is tidied up")
}

// A permission that is missing altogether is an error, and not a seat that is taken.
func TestJoinWhereNothingMayBeTaken(t *testing.T) {
	t.Parallel()
	src := hostIn(t, t.TempDir(), "alpha")
	src.locks = private{src.locks, map[string]bool{seatName(1): true}}
	m := &meeting{src: src, pace: quickly(2)}
	require.ErrorIs(t, m.run(t.Context()), fs.ErrPermission)
}

// What a host learns from what the others told comes after it has told its own: its
// last mark carries it to them.
func TestJoinPassesOnWhatItLearnsLast(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	src := hostIn(t, base, "alpha")
	m := &meeting{src: src, pace: quickly(2), place: 1, turns: 1, fences: []uint64{7}}
	m.peers = []*peer{{account: &account{Turns: 1, Fences: []uint64{7}}}}
	require.NoError(t, m.tell(t.Context()))
	require.NoError(t, m.reply(t.Context()))
	defer m.leave()
	told := func(mark string) *account {
		seen, err := multilock.Inspect(t.Context(), src.locks, markName(1, mark), multilock.Patience{})
		require.NoError(t, err)
		return parseAccount(seen.Record.Holder.Command)
	}
	require.False(t, told(toldMark).Harm)
	require.True(t, told(readMark).Harm)
}
