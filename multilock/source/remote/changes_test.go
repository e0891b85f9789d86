package remote_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// store is a lock's record, with the outcomes of the next tries to change it.
type store struct {
	mine bool
	step int64
	done bool
	fate []string // of each try: "", "dropped", "lost", "refused"
}

var errNoAnswer = errors.New("no answer")

func (s *store) try(next remote.Change) (remote.Shown, error) {
	fate := ""
	if len(s.fate) > 0 {
		fate, s.fate = s.fate[0], s.fate[1:]
	}
	if fate == "refused" {
		return remote.Shown{}, errNoAnswer
	}
	if fate != "dropped" && s.mine && s.step == next.Before {
		s.step, s.done = next.Record.Step, true
	}
	if fate != "" {
		return remote.Shown{Doubt: true}, errNoAnswer
	}
	return remote.Shown{Mine: s.mine, Step: s.step, Left: s.step, Done: s.done}, nil
}

func (s *store) holder() (change func() error, h *remote.Holding) {
	h = remote.NewHolding(source.Record{Name: "x", Token: "t"}, boottime.Now())
	changes := remote.NewChanges(remote.NewRecord("t", example), 0)
	return func() error {
		_, err := changes.Make(h, errors.New("gone"), func(*remote.Change) {}, s.try)
		return err
	}, h
}

// An unanswered change may have taken effect; the next change works in both cases.
func TestChanges(t *testing.T) {
	for _, fate := range []string{"dropped", "lost"} {
		s := &store{mine: true, fate: []string{fate}}
		change, _ := s.holder()
		err := change()
		require.ErrorIs(t, err, source.ErrUnsure)
		require.ErrorIs(t, err, errNoAnswer)
		require.NoError(t, change())
		require.NoError(t, change())
		require.EqualValues(t, 3, s.step, fate)
	}
	s := &store{mine: true, fate: []string{"refused"}}
	change, h := s.holder()
	err := change()
	require.ErrorIs(t, err, errNoAnswer)
	require.NotErrorIs(t, err, source.ErrUnsure)
	require.NoError(t, change())
	s.mine, s.done = false, true
	require.ErrorIs(t, change(), source.ErrLost, "what another has left is none of this one's, if each try was answered")
	require.Equal(t, source.ErrReleased, h.End(source.ErrReleased))
	require.Equal(t, source.ErrReleased, change())
}

// If the reply to a change was lost, and a later try of it shows that the lock is lost but the
// change was made, it succeeded.
func TestChangeMadeBeforeTheLoss(t *testing.T) {
	h := remote.NewHolding(source.Record{Name: "x", Token: "t"}, boottime.Now())
	changes := remote.NewChanges(remote.Record{}, 7)
	for _, shown := range []remote.Shown{{Done: true, Doubt: true}, {Done: true}, {Doubt: true}} {
		_, err := changes.Make(h, errors.New("gone"), func(*remote.Change) {}, func(next remote.Change) (remote.Shown, error) {
			require.EqualValues(t, 7, next.Before)
			return shown, nil
		})
		require.Equal(t, !shown.Done || !shown.Doubt, errors.Is(err, source.ErrLost), shown)
	}
}

// Concurrent changes do not cause endless retries.
func TestChangesAgainAndAgain(t *testing.T) {
	h := remote.NewHolding(source.Record{Name: "x", Token: "t"}, boottime.Now())
	tries := int64(0)
	_, err := remote.NewChanges(remote.Record{}, 0).Make(h, nil, func(*remote.Change) {}, func(next remote.Change) (remote.Shown, error) {
		require.Equal(t, tries, next.Before)
		tries++
		return remote.Shown{Mine: true, Step: -1, Left: tries}, nil
	})
	require.ErrorIs(t, err, remote.ErrAgain)
	require.ErrorIs(t, err, source.ErrPassing)
	require.EqualValues(t, remote.MaxAgain, tries)
}
