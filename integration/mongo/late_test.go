package mongo_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
)

// lateAttempt has the first upsert of a contender carried out when the contender has
// seen that it was not, and right before its second one.
func lateAttempt(l *lab) {
	stuck, done := make(chan struct{}), make(chan struct{})
	l.server.Inject(func(c mongolab.Command) mongolab.Fault {
		if c.Name != "update" {
			return mongolab.Fault{}
		}
		switch c.Nth {
		case 0:
			return mongolab.Fault{Outcome: mongolab.Zombie, Before: mongolab.Until(stuck)}
		case 2:
			return mongolab.Fault{Before: func(ctx context.Context) {
				close(stuck)
				go l.awaitZombie(done)
				mongolab.Until(done)(ctx)
			}}
		}
		return mongolab.Fault{}
	})
}

// awaitZombie closes done when a command was carried out that was stuck.
func (l *lab) awaitZombie(done chan<- struct{}) {
	defer close(done)
	require.Eventually(l, func() bool {
		for _, x := range l.server.Log() {
			if x.Outcome == mongolab.Zombie && x.Reply != nil {
				return true
			}
		}
		return false
	}, watchdog, eyeblink)
}

// Whoever meets a late attempt of its own takes it over, and does not wait for it.
func TestLateAttemptIsAdopted(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	requireState(t, src, "nightly", multilock.StateFree)
	lateAttempt(l)
	lock := try(t, src, "nightly", multilock.Options{TTL: long, Detached: true})
	l.server.Inject(nil)
	require.Equal(t, lock.Record().Token, l.raw(c, "nightly")["locked"])
	require.NoError(t, lock.Verify(within(t)))
	require.NoError(t, lock.Release(within(t)))
}

// Whoever does not look is refused, and takes the late attempt back.
func TestLateAttemptIsTakenBack(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	requireState(t, src, "nightly", multilock.StateFree)
	lateAttempt(l)
	_, err := multilock.TryOnce(within(t), src, "nightly", multilock.Options{TTL: long})
	require.ErrorIs(t, err, multilock.ErrHeld)
	l.server.Inject(nil)
	requireState(t, src, "nightly", multilock.StateFree)
}

// A holder that was broken is not brought back to life by a late command of its own:
// each attempt has another token.
func TestLateAttemptRevivesNobody(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	requireState(t, src, "nightly", multilock.StateFree)
	stuck, done := make(chan struct{}), make(chan struct{})
	l.server.Inject(mongolab.Nth("update", 0, mongolab.Fault{Outcome: mongolab.Zombie, Before: mongolab.Until(stuck)}))
	lock := try(t, src, "nightly", multilock.Options{TTL: long, Detached: true})
	_, err := multilock.Break(within(t), l.open(c, ""), "nightly", multilock.Want{Alive: true})
	require.NoError(t, err)
	close(stuck)
	l.awaitZombie(done)
	requireState(t, src, "nightly", multilock.StateHeld)
	require.ErrorIs(t, lock.Verify(within(t)), multilock.ErrLost)
	_ = lock.Detach()
}
