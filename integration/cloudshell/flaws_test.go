package cloudshell_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cloudshell"
)

// Each test in this file is about a flaw in the sample code of the convention, which its comment
// describes, and shows that multilock does not have that flaw.

// The sample code removes the service, even if another process added it.
func TestReleaseRemovesNobodyElsesService(t *testing.T) {
	for _, owner := range []string{"", "somebody"} {
		l := newLab(t, serverOptions())
		lock := try(t, l.open(t), "MUTEX", multilock.Options{})
		require.NoError(t, l.server.DeleteService(sandbox, "MUTEX"))
		l.put(t, "MUTEX", owner) // a script, which took the lock for free
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
		_, there := l.service("MUTEX")
		require.True(t, there, "the script keeps its service")
		require.Contains(t, requireHeld(t, l.open(t), "MUTEX").Why, "script")
	}
}

// The sample code takes every error for contention, and waits.
func TestErrorsAreNoContention(t *testing.T) {
	deadToken := func(l *lab) { l.opt.Token, l.opt.User = cloudshell.NewSecret("dead"), "" }
	for name, c := range map[string]struct {
		change func(*lab)
		words  string
	}{
		"password":    {func(l *lab) { l.opt.Password = cloudshell.NewSecret("wrong") }, "check the password"},
		"user":        {func(l *lab) { l.opt.User = "nobody" }, "check the password"},
		"token":       {deadToken, "the token ends with the command"},
		"reservation": {func(l *lab) { l.opt.Reservation = "6d0c0f40-0000-0000-0000-000000000000" }, "No reservation"},
		"ended":       {func(l *lab) { _ = l.server.EndReservation(sandbox) }, "has ended"},
		"model":       {func(l *lab) { l.opt.Model = "No Such Model" }, "No service model"},
		"network":     {func(l *lab) { l.opt.Server = "127.0.0.1:1" }, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, serverOptions())
			c.change(l)
			_, err := multilock.Acquire(t.Context(), l.open(t), "MUTEX", multilock.Options{})
			require.Error(t, err)
			require.NotErrorIs(t, err, multilock.ErrHeld)
			require.ErrorContains(t, err, c.words)
			require.NotErrorIs(t, err, multilock.ErrUnsure, "nothing can have been taken: %v", err)
		})
	}
}

// A successful attempt of the sample code waits for itself if its check of the owner failed or the
// reply was lost.
func TestNobodyWaitsForHimself(t *testing.T) {
	for name, inject := range map[string]fakecloudshell.Injector{
		"check failed":     fakecloudshell.At(fakecloudshell.GetDetails, 2, fakecloudshell.Fault{Status: 500}),
		"answer lost":      fakecloudshell.At(fakecloudshell.AddService, 1, fakecloudshell.Fault{Reply: fakecloudshell.Dropped}),
		"last answer lost": fakecloudshell.At(fakecloudshell.AddService, 2, fakecloudshell.Fault{Reply: fakecloudshell.Dropped}),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, serverOptions())
			l.server.Inject(inject)
			lock := try(t, l.open(t), "MUTEX", multilock.Options{})
			require.NoError(t, lock.Verify(t.Context()))
			release(t, lock)
		})
	}
}

// The sample code reads the owner, and the protected data, from a cache.
func TestEveryListingGoesPastTheCache(t *testing.T) {
	l := newLab(t, serverOptions())
	listings := 0
	l.server.Inject(func(c fakecloudshell.Call) fakecloudshell.Fault {
		if c.Method == fakecloudshell.GetDetails {
			listings++
			require.Contains(t, c.Body, "<disableCache>true</disableCache>")
		}
		return fakecloudshell.Fault{}
	})
	src := l.open(t)
	lock := try(t, src, "MUTEX", multilock.Options{})
	require.NoError(t, lock.Verify(t.Context()))
	requireHeld(t, l.open(t), "MUTEX")
	release(t, lock)
	_, err := src.Empty(t.Context())
	require.NoError(t, err)
	require.Greater(t, listings, 5)
}

// A server that ignores disableCache cannot be used for locks: multilock does not trust a lock that a
// listing does not show.
func TestListingsThatLagAreNoProof(t *testing.T) {
	opt := serverOptions()
	opt.Policy.IgnoreDisableCache = true
	l := newLab(t, opt)
	_, err := multilock.TryAcquire(t.Context(), l.open(t), "MUTEX", multilock.Options{})
	require.ErrorIs(t, err, multilock.ErrUnsure)
	require.ErrorContains(t, err, "out of date")
}

// The sample code checks the owner of MUTEX, whatever the lock's name, and its owner is the same for
// every run of a driver.
func TestEveryNameHasAnOwnerThatIsUnique(t *testing.T) {
	l := newLab(t, serverOptions())
	tokens := map[string]bool{}
	for _, name := range []string{"MUTEX", "PORTS", "PORTS", "PORTS"} {
		lock := try(t, l.open(t), name, multilock.Options{})
		s, there := l.service(name)
		require.True(t, there)
		token := lock.Record().Token
		require.Contains(t, s.Attributes[fakecloudshell.OwnerAttribute], token)
		require.False(t, tokens[token])
		tokens[token] = true
		require.Equal(t, token, requireHeld(t, l.open(t), name).Record.Token)
		release(t, lock)
	}
}

// With the sample code, a sandbox from a blueprint that was saved while locked starts out locked.
func TestLockFromABlueprintIsFree(t *testing.T) {
	first := newLab(t, serverOptions())
	src := first.open(t)
	lock := try(t, src, "MUTEX", multilock.Options{TTL: time.Hour})
	saved := first.server.Services(sandbox)
	require.Len(t, saved, 2)

	opt := serverOptions()
	opt.Reservations[0].ID, opt.Reservations[0].Services = "a-new-sandbox", saved
	second := newLab(t, opt)
	second.opt.Reservation = "a-new-sandbox"
	copied := second.open(t)
	empty, err := copied.Empty(t.Context())
	require.NoError(t, err)
	require.True(t, empty)
	release(t, try(t, copied, "MUTEX", multilock.Options{}))
	release(t, lock)
}

// In the sample code, a holder does not notice when a user deletes the service or changes its owner in
// the portal.
func TestHolderNoticesThePortal(t *testing.T) {
	for name, interfere := range map[string]func(*testing.T, *lab){
		"deleted":   func(t *testing.T, l *lab) { require.NoError(t, l.server.DeleteService(sandbox, "MUTEX")) },
		"edited":    func(t *testing.T, l *lab) { l.put(t, "MUTEX", "me, please") },
		"all gone":  func(t *testing.T, l *lab) { deleteAll(t, l) },
		"the whole": func(t *testing.T, l *lab) { require.NoError(t, l.server.EndReservation(sandbox)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, serverOptions())
			lock := try(t, l.open(t), "MUTEX", multilock.Options{TTL: time.Second})
			interfere(t, l)
			<-lock.Context().Done() // by the keeper, within a heartbeat
			require.ErrorIs(t, context.Cause(lock.Context()), multilock.ErrLost)
			require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
		})
	}
}

func deleteAll(t *testing.T, l *lab) {
	t.Helper()
	for _, alias := range l.aliases() {
		require.NoError(t, l.server.DeleteService(sandbox, alias))
	}
}

// No output and no file contains a secret.
func TestSecretsStaySecret(t *testing.T) {
	l := newLab(t, serverOptions())
	command, err := l.server.RunCommand("admin")
	require.NoError(t, err)
	opt := l.opt
	opt.Token = cloudshell.NewSecret(command.Token())
	var said []string
	for secret, o := range map[string]cloudshell.Options{password: l.opt, command.Token(): opt} {
		src := l.openWith(t, o)
		echo := fakecloudshell.Failure{Code: 118, Message: "bad: " + secret}
		lock := try(t, src, "MUTEX", multilock.Options{})
		for _, fault := range []fakecloudshell.Fault{{Failure: &echo}, {Status: 500}, {Reply: fakecloudshell.Dropped}, {Status: 302}} {
			l.server.Inject(fakecloudshell.At("", 0, fault))
			_, err := src.Names(t.Context())
			said = append(said, describe(err)...)
			said = append(said, describe(src.Examine(t.Context()))...)
			said = append(said, describe(lock.Verify(t.Context()))...)
		}
		l.server.Inject(nil)
		said = append(said, describe(src, o, &o, lock, src.Guarantees(), o.Password, o.Token)...)
		release(t, lock)
	}
	for _, services := range said {
		require.NotContains(t, services, password)
		require.NotContains(t, services, command.Token())
	}
	for _, s := range l.server.Services(sandbox) {
		require.NotContains(t, s.Attributes[fakecloudshell.OwnerAttribute], password)
	}
}

// describe formats values in every way that programs use.
func describe(values ...any) (texts []string) {
	for _, v := range values {
		texts = append(texts, sprint("%v", v), sprint("%+v", v), sprint("%#v", v), sprint("%s", v), sprint("%q", v))
		if text, err := json.Marshal(v); err == nil {
			texts = append(texts, string(text))
		}
	}
	return texts
}
