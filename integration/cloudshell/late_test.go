package cloudshell_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cloudshell"
)

// A decision made on an old state must not affect a later one, although the API has only "add" and
// "remove by alias". These tests delay requests arbitrarily.

// twoUsers returns two sources whose requests can be told apart.
func twoUsers(t *testing.T, l *lab) (slow, quick *cloudshell.Source) {
	t.Helper()
	opt := l.opt
	opt.User, opt.Password = "ann", cloudshell.NewSecret("ann")
	return l.open(t), l.openWith(t, opt)
}

// holdBack applies a fault to the slow user's first matching call. The channel is closed when that call
// arrives.
func (l *lab) holdBack(method fakecloudshell.Method, match func(string) bool, fault fakecloudshell.Fault) (reached <-chan struct{}) {
	arrived := make(chan struct{})
	var once sync.Once
	l.server.Inject(func(c fakecloudshell.Call) (struck fakecloudshell.Fault) {
		if c.Method == method && c.User == "admin" && match(c.Body) {
			once.Do(func() {
				struck = fault
				close(arrived)
			})
		}
		return struck
	})
	return arrived
}

func mentions(text string) func(string) bool {
	return func(body string) bool { return strings.Contains(body, text) }
}

func removal(alias string) func(string) bool { return mentions("<string>" + alias + "</string>") }

// An attempt saw the lock free. Its request arrives after several others have held the lock, released
// it and cleaned up, so the alias that it requests is free again.
func TestAttemptFromLongAgoDoesNotSucceed(t *testing.T) {
	for _, stillHeld := range []bool{true, false} {
		l := newLab(t, serverOptions())
		slow, quick := twoUsers(t, l)
		proceed := make(chan struct{})
		arrived := l.holdBack(fakecloudshell.AddService, mentions("MUTEX.TURN."), fakecloudshell.Fault{Hold: proceed})
		type outcome struct {
			lock *multilock.Lock
			err  error
		}
		done := make(chan outcome, 1)
		go func() {
			lock, err := multilock.TryOnce(t.Context(), slow, "MUTEX", multilock.Options{})
			done <- outcome{lock, err}
		}()
		<-arrived
		for range 3 {
			release(t, try(t, quick, "MUTEX", multilock.Options{}))
		}
		var present *multilock.Lock
		if stillHeld {
			present = try(t, quick, "MUTEX", multilock.Options{})
		}
		close(proceed)
		late := <-done
		require.ErrorIs(t, late.err, multilock.ErrHeld)
		require.Nil(t, late.lock)
		if stillHeld {
			require.NoError(t, present.Verify(t.Context()))
			release(t, present)
		}
		release(t, try(t, slow, "MUTEX", multilock.Options{}))
		require.Len(t, l.aliases(), 1, "the late service is cleaned up")
	}
}

// A holder's removal is executed long after it has lost the lock. The register still keeps out other
// clients of multilock, and the current holder learns that scripts are not kept out.
func TestRemovalFromLongAgoLetsNobodyIn(t *testing.T) {
	l := newLab(t, serverOptions())
	slow, quick := twoUsers(t, l)
	lock := try(t, slow, "MUTEX", multilock.Options{})
	l.holdBack(fakecloudshell.RemoveServices, removal("MUTEX"), fakecloudshell.Fault{Execute: fakecloudshell.OnceGone, Reply: fakecloudshell.Dropped})
	release(t, lock) // it was sent twice, and the first request is still on its way
	successor := try(t, quick, "MUTEX", multilock.Options{})
	require.Equal(t, 1, l.server.Land())
	require.NotContains(t, l.aliases(), "MUTEX")

	require.Equal(t, successor.Record().Token, requireHeld(t, slow, "MUTEX").Record.Token)
	require.ErrorIs(t, successor.Verify(t.Context()), multilock.ErrLost)
	require.ErrorIs(t, successor.Release(t.Context()), multilock.ErrLost)
	release(t, try(t, slow, "MUTEX", multilock.Options{}))
}

// A breaker is delayed between its decision and its step, and between its step and the removal.
func TestBreakerFromLongAgoBreaksNoSuccessor(t *testing.T) {
	for name, c := range map[string]struct {
		method fakecloudshell.Method
		match  func(string) bool
		lost   bool // the successor's service is removed
	}{
		"before its step": {fakecloudshell.AddService, mentions("MUTEX.TURN."), false},
		"after its step":  {fakecloudshell.RemoveServices, removal("MUTEX"), true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, serverOptions())
			slow, quick := twoUsers(t, l)
			victim := try(t, quick, "MUTEX", multilock.Options{})
			proceed := make(chan struct{})
			arrived := l.holdBack(c.method, c.match, fakecloudshell.Fault{Hold: proceed})
			done := make(chan error, 1)
			go func() {
				_, err := multilock.Break(t.Context(), slow, "MUTEX", multilock.BreakOptions{Alive: true})
				done <- err
			}()
			<-arrived
			_, err := multilock.Break(t.Context(), quick, "MUTEX", multilock.BreakOptions{Alive: true})
			require.NoError(t, err)
			successor := try(t, quick, "MUTEX", multilock.Options{})
			close(proceed)
			<-done
			require.Equal(t, successor.Record().Token, requireHeld(t, slow, "MUTEX").Record.Token)
			if c.lost {
				require.ErrorIs(t, successor.Verify(t.Context()), multilock.ErrLost)
			} else {
				require.NoError(t, successor.Verify(t.Context()))
			}
			_ = successor.Release(t.Context())
			require.ErrorIs(t, victim.Release(t.Context()), multilock.ErrLost)
			release(t, try(t, slow, "MUTEX", multilock.Options{}))
		})
	}
}
