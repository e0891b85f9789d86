package schedules_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/multilock/cloudshell"
	"github.com/multilock/go/multilock/source"
)

const sandbox = "5c1e0b3a-77f2-4c0d-9c56-0f0d4a9b2e11"

// portal is a CloudShell server and the sources that its clients have opened.
type portal struct {
	server  *fakecloudshell.Server
	sources map[string]source.Source
}

func newPortal() any {
	return &portal{sources: map[string]source.Source{}, server: fakecloudshell.New(fakecloudshell.Options{
		Users:        []fakecloudshell.User{{Name: "admin", Password: "secret", Admin: true}},
		Models:       []fakecloudshell.Model{fakecloudshell.OwnedMutex()},
		Reservations: []fakecloudshell.Reservation{{ID: sandbox}},
	})}
}

func portalOf(w *explore.World) *portal { return w.Facts.(*portal) }

// wire replaces a connection to the server: an actor's, or one without faults. A request that was sent
// is executed, even if its sender ends.
type wire struct {
	world *explore.World
	ask   func(kind, about string, changes bool, execute func() error) error
}

func (c wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	method := path.Base(r.URL.Path)
	answer := httptest.NewRecorder()
	err = c.ask(method, about(body), strings.HasSuffix(method, "Reservation"), func() error {
		sent := r.Clone(context.Background())
		sent.Body = io.NopCloser(bytes.NewReader(body))
		answer = httptest.NewRecorder()
		portalOf(c.world).server.ServeHTTP(answer, sent)
		return nil
	})
	if err == nil {
		err = r.Context().Err() // the reply came too late
	}
	if err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// about returns the alias that a request names.
func about(body []byte) string {
	for _, tag := range []string{"alias", "string"} {
		if _, rest, found := strings.Cut(string(body), "<"+tag+">"); found {
			alias, _, _ := strings.Cut(rest, "<")
			return alias
		}
	}
	return "-"
}

// logsOn opens the actor's source and logs on.
func logsOn(a *explore.Actor) {
	src, err := openPortal(a.Host, wire{a.World(), a.Ask})
	if err == nil {
		_, err = src.Now(context.Background())
	}
	if err != nil {
		a.World().Violate("prepare: %v", err)
		return
	}
	portalOf(a.World()).sources[a.Name] = src
}

func openPortal(host string, way http.RoundTripper) (*cloudshell.Source, error) {
	self, err := locks.WhoWeAre()
	if err != nil {
		return nil, err
	}
	return cloudshell.Open(cloudshell.Options{
		Server: "portal", Scheme: "http", User: "admin", Password: cloudshell.NewSecret("secret"), Reservation: sandbox,
		Self: locks.OnHost(self, host), Transport: way,
	})
}

// registered returns the token in the lock's register, "" if the lock is free.
func registered(w *explore.World) (token string) {
	top := 0
	for _, s := range portalOf(w).server.Services(sandbox) {
		mark, number, found := strings.Cut(s.Alias, ".TURN.")
		n, err := strconv.Atoi(number)
		if !found || err != nil || mark != cloudshell.DefaultName || n < top {
			continue
		}
		top, token = n, ""
		fields := strings.Split(s.Attributes[fakecloudshell.OwnerAttribute], ";")
		for _, field := range fields {
			if value, found := strings.CutPrefix(field, "n="); found && slices.Contains(fields, "held") {
				token = value
			}
		}
	}
	return token
}

// hasTheRegister reports a violation if a process that trusts its lock is not the one in the register.
func hasTheRegister(w *explore.World, a *explore.Actor) string {
	if token := registered(w); token != a.Has {
		return a.Name + " trusts its lock, but the register has " + token
	}
	return ""
}

func onPortal(during func(*explore.Actor, source.Lease)) func(*explore.Actor) {
	return func(a *explore.Actor) {
		c, err := portalOf(a.World()).sources[a.Name].Contend(context.Background(), cloudshell.DefaultName, locks.Claim, source.StalePolicy{})
		if err != nil {
			a.World().Violate("contend: %v", err)
			return
		}
		locks.Owner(hasTheRegister).Contends(a, c, 0, func(lease source.Lease) { during(a, lease) })
	}
}

func staysOnPortal(a *explore.Actor, lease source.Lease) {
	locks.Owner(hasTheRegister).GivesSigns(a, lease, 2)
}

// onServer returns a scenario of two contenders for a lock on a server. No request is sent twice.
func onServer(facts func() any, prepare func(*explore.Actor), actors ...func(*explore.Actor)) *explore.Scenario {
	sc := locks.Scenario(actors...)
	sc.Facts, sc.Prepare, sc.Private, sc.Remember, sc.Looks, sc.InTurn = facts, prepare, nil, false, false, true
	sc.Kinds = []explore.Fate{explore.Crash, explore.Pause, explore.Slow, explore.Nap, explore.Doze, explore.Lost, explore.Failed, explore.Late}
	return sc
}

func TestExploreCloudShell(t *testing.T) {
	t.Parallel()
	sc := onServer(newPortal, logsOn, onPortal(staysOnPortal), onPortal(staysOnPortal))
	sc.Owns, sc.AtEnd = hasTheRegister, func(w *explore.World) { isFree(w, registered(w)) }
	explored(t, sc)
	proven(t, sc.Sample(t, 2, 1500)) // a step delayed by two others shows up in few orders
}
