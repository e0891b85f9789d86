//go:build unix

package trial

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
// kept from a trial by what only its owner may clear away.
func TestJoinBesideADeadUsersSeat(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	pace := quickly(2)
	dead := hostIn(t, base, "omega")
	deadIn(t, dead, 100*time.Millisecond, named.seatName(1))
	require.Eventually(t, func() bool {
		seen, err := multilock.Inspect(t.Context(), dead.locks, named.seatName(1), multilock.Patience{})
		return err == nil && seen.State != multilock.StateHeld
	}, watchdog, poll)
	hosts := hostsIn(t, base, "alpha", "beta")
	for _, src := range hosts {
		src.locks = private{src.locks, map[string]bool{named.seatName(1): true}}
	}
	for _, a := range gather(t.Context(), pace, hosts...) {
		require.NoError(t, a.err)
		require.Greater(t, a.seat.number, 1)
		require.Equal(t, "fine join", a.severities()[len(a.severities())-1], a.text())
	}
	require.Equal(t, []string{named.seatName(1)}, namesIn(t, filepath.Join(base, ".locks")), "all else is tidied up")
}

// A permission that is missing altogether is an error, and not a seat that is taken.
func TestJoinWhereNothingMayBeTaken(t *testing.T) {
	t.Parallel()
	src := hostIn(t, t.TempDir(), "alpha")
	src.locks = private{src.locks, map[string]bool{named.seatName(1): true}}
	h, _ := quickly(2).on(src)
	require.ErrorIs(t, h.run(t.Context()), fs.ErrPermission)
}

// What a host learns from what the others told comes after it has told its own: its
// last mark carries it to them.
func TestJoinPassesOnWhatItLearnsLast(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	src := hostIn(t, base, "alpha")
	h, _ := quickly(2).on(src)
	h.seat.number, h.turns.had, h.turns.fences = 1, 1, []uint64{7}
	h.others.peers = []*peer{{Host: Host{Account: Account{Turns: 1, Fences: []uint64{7}}}}}
	require.NoError(t, h.mark(t.Context(), toldMark))
	h.compare()
	require.NoError(t, h.mark(t.Context(), readMark))
	defer h.seat.leave()
	told := func(mark string) bool {
		seen, err := multilock.Inspect(t.Context(), src.locks, named.markName(1, mark), multilock.Patience{})
		require.NoError(t, err)
		_, harm, ok := parseAccount(seen.Record.Holder.Command, joinCommand)
		require.True(t, ok)
		return harm
	}
	require.False(t, told(toldMark))
	require.True(t, told(readMark))
}
