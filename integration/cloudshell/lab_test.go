package cloudshell_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cloudshell"
)

const (
	sandbox  = "5c1e0b3a-77f2-4c0d-9c56-0f0d4a9b2e11"
	password = "s3cret-and-long"
)

// lab is a server with one reservation.
type lab struct {
	server *fakecloudshell.Server
	opt    cloudshell.Options
}

func serverOptions() fakecloudshell.Options {
	return fakecloudshell.Options{
		Users:        []fakecloudshell.User{{Name: "admin", Password: password, Admin: true}, {Name: "ann", Password: "ann"}},
		Models:       []fakecloudshell.Model{fakecloudshell.OwnedMutex(), {Name: "Chiller"}},
		Reservations: []fakecloudshell.Reservation{{ID: sandbox}},
	}
}

func newLab(t testing.TB, opt fakecloudshell.Options) *lab {
	t.Helper()
	server := fakecloudshell.Start(t, opt)
	at, err := url.Parse(server.URL())
	require.NoError(t, err)
	return &lab{server, cloudshell.Options{
		Server: at.Host, Scheme: at.Scheme, User: "admin", Password: cloudshell.NewSecret(password), Reservation: sandbox,
		Pause: cloudshell.Pause{Least: 5 * time.Millisecond, Most: 50 * time.Millisecond}, Timeout: 20 * time.Second,
	}}
}

func (l *lab) open(t testing.TB) *cloudshell.Source {
	t.Helper()
	return l.openWith(t, l.opt)
}

func (l *lab) openWith(t testing.TB, opt cloudshell.Options) *cloudshell.Source {
	t.Helper()
	src, err := cloudshell.Open(opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, src.Close()) })
	return src
}

// aliases returns the sorted aliases of all services.
func (l *lab) aliases() []string {
	names := []string{}
	for _, s := range l.server.Services(sandbox) {
		names = append(names, s.Alias)
	}
	slices.Sort(names)
	return names
}

// service returns the service with an alias.
func (l *lab) service(alias string) (fakecloudshell.Service, bool) {
	for _, s := range l.server.Services(sandbox) {
		if s.Alias == alias {
			return s, true
		}
	}
	return fakecloudshell.Service{}, false
}

func (l *lab) put(t testing.TB, alias, owner string) {
	t.Helper()
	s := fakecloudshell.Service{Model: fakecloudshell.MutexModel, Alias: alias, Attributes: map[string]string{}}
	if owner != "" {
		s.Attributes[fakecloudshell.OwnerAttribute] = owner
	}
	require.NoError(t, l.server.PutService(sandbox, s))
}

func try(t testing.TB, src multilock.Source, name string, opt multilock.Terms) *multilock.Lock {
	t.Helper()
	lock, err := multilock.TryAcquire(t.Context(), src, name, opt)
	require.NoError(t, err)
	return lock
}

func release(t testing.TB, lock *multilock.Lock) {
	t.Helper()
	require.NoError(t, lock.Release(t.Context()))
}

func requireHeld(t testing.TB, src multilock.Source, name string) multilock.Observation {
	t.Helper()
	_, err := multilock.TryAcquire(t.Context(), src, name, multilock.Options{})
	var held *multilock.HeldError
	require.ErrorAs(t, err, &held)
	return held.Observation
}

// sprint is fmt.Sprintf with a format that vet cannot analyze.
func sprint(format string, value any) string { return fmt.Sprintf(format, value) }
