package fakecloudshell_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
)

const taken = "Service with given alias already exists"

func TestTheSecondAddIsRefused(t *testing.T) {
	server := start(t, basic())
	p, other := admin(t, server), logOn(t, server, "ann", "a&<b>")
	p.must(t, addMutex, mutex(owned("first")))
	require.Equal(t, fakecloudshell.Failure{Code: 100, Message: taken}, other.refused(t, addMutex, mutex(owned("second"))))
	require.Equal(t, 100, p.refused(t, addMutex, mutex(owned("first"))).Code, "not even the owner adds it twice")
	require.Equal(t, fakecloudshell.MutexModel, server.Services(lab)[0].Model)
	require.Equal(t, "first", server.Services(lab)[0].Attributes[fakecloudshell.OwnerAttribute])
	other.must(t, "RemoveServicesFromReservation", removing("MUTEX")) // whoever wants to may
	other.must(t, addMutex, mutex(owned("second")))
	require.Equal(t, "second", p.services(t, fresh)[0].owner())
}

// All adds of a round are let go at the same moment, with nothing between that and
// the decision.
func TestOfConcurrentAddsOneSucceeds(t *testing.T) {
	server := start(t, basic())
	const peers, rounds = 6, 20
	wire := make([]*peer, peers)
	for i := range wire {
		wire[i] = admin(t, server)
	}
	for round := range rounds {
		gate := make(chan struct{})
		hold := fakecloudshell.Fault{Hold: fakecloudshell.Pause{Until: gate}}
		server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Method: fakecloudshell.AddService, Fault: hold}))
		var winners atomic.Int32
		var all sync.WaitGroup
		for i, p := range wire {
			all.Go(func() {
				r, err := p.call(within(t), addMutex, mutex(owned(fmt.Sprint(round, i))))
				if err == nil && r.Success {
					winners.Add(1)
				}
			})
		}
		require.NoError(t, server.Wait(within(t), fakecloudshell.Arrived(fakecloudshell.AddService, (round+1)*peers)))
		close(gate)
		all.Wait()
		require.EqualValues(t, 1, winners.Load())
		wire[0].must(t, "RemoveServicesFromReservation", removing("MUTEX"))
	}
}

func TestAttributes(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	p.must(t, addMutex, mutex(noOwner))
	require.Equal(t, map[string]string{fakecloudshell.OwnerAttribute: ""}, server.Services(lab)[0].Attributes)
	p.must(t, addMutex, adding("Plain", "plain", "<attributes></attributes>"))
	require.Equal(t, 100, p.refused(t, addMutex, adding("Plain", "again", owned("x"))).Code)
	require.Equal(t, []string{"MUTEX", "plain"}, aliases(server.Services(lab)))
	require.Empty(t, p.services(t, fresh)[1].Attributes)

	text := "é & <tag> \"quoted\" ; = \u2028 日本"
	p.must(t, addMutex, adding(fakecloudshell.MutexModel, "other", owned(text)))
	require.Equal(t, text, server.Services(lab)[2].Attributes[fakecloudshell.OwnerAttribute])
	require.Equal(t, text, p.services(t, fresh)[2].owner())
	p.must(t, addMutex, adding("Plain", "&#233;", noOwner))
}

func TestUnknownAttributesMayBeIgnored(t *testing.T) {
	opt := basic()
	opt.Policy.IgnoreUnknownAttributes = true
	server := start(t, opt)
	admin(t, server).must(t, addMutex, adding("Plain", "plain", owned("x")))
	require.Empty(t, server.Services(lab)[0].Attributes)
}

func TestLongValues(t *testing.T) {
	for _, cut := range []bool{false, true} {
		opt := basic()
		opt.Policy.MaxValue, opt.Policy.CutValues = 3, cut
		server := start(t, opt)
		p := admin(t, server)
		p.must(t, addMutex, adding(fakecloudshell.MutexModel, "short", owned("äöü")))
		r, err := p.call(within(t), addMutex, mutex(owned("äöüß")))
		require.NoError(t, err)
		require.Equal(t, cut, r.Success)
		for _, s := range server.Services(lab) {
			require.Equal(t, "äöü", s.Attributes[fakecloudshell.OwnerAttribute])
		}
		require.Len(t, server.Services(lab), map[bool]int{false: 1, true: 2}[cut])
	}
}

func TestUnknownAliases(t *testing.T) {
	for policy, want := range map[fakecloudshell.UnknownAliases]struct {
		success bool
		left    []string
	}{
		fakecloudshell.RemoveNone:  {false, []string{"a", "b"}},
		fakecloudshell.RemoveRest:  {false, []string{"b"}},
		fakecloudshell.RemoveQuiet: {true, []string{"b"}},
	} {
		opt := basic()
		opt.Policy.UnknownAliases = policy
		opt.Reservations[0].Services = []fakecloudshell.Service{{Alias: "a"}, {Alias: "b"}}
		server := start(t, opt)
		p := admin(t, server)
		r, err := p.call(within(t), "RemoveServicesFromReservation", removing("a", "nothing"))
		require.NoError(t, err)
		require.Equal(t, want.success, r.Success)
		require.Equal(t, want.left, aliases(server.Services(lab)))
		p.must(t, "RemoveServicesFromReservation", removing("b"))
	}
}

func TestAliasesAndTheCaseOfLetters(t *testing.T) {
	for _, fold := range []bool{false, true} {
		opt := basic()
		opt.Policy.FoldAliases = fold
		server := start(t, opt)
		p := admin(t, server)
		p.must(t, addMutex, mutex(noOwner))
		r, err := p.call(within(t), addMutex, adding("Plain", "Mutex", noOwner))
		require.NoError(t, err)
		require.Equal(t, !fold, r.Success)
		p.must(t, "RemoveServicesFromReservation", removing(aliases(server.Services(lab))...))
	}
}

func TestWhatAddRefuses(t *testing.T) {
	opt := basic()
	opt.Policy.ProtectAdminModels = true
	server := start(t, opt)
	p := admin(t, server)
	defaults := map[string]fakecloudshell.Failure{}
	for name, parameters := range map[string]string{
		"model":       adding("None", "x", noOwner),
		"alias":       adding("Plain", "", noOwner),
		"reservation": "<reservationId>none</reservationId><serviceName>Plain</serviceName><alias>x</alias>" + noOwner,
		"domain":      "<reservationId>other</reservationId><serviceName>Plain</serviceName><alias>x</alias>" + noOwner,
	} {
		defaults[name] = p.refused(t, addMutex, parameters)
		require.Equal(t, 100, defaults[name].Code)
	}
	require.Equal(t, defaults["reservation"], defaults["domain"])
	require.NotEqual(t, defaults["model"], defaults["alias"])
	require.Equal(t, 100, logOn(t, server, "ann", "a&<b>").refused(t, addMutex, mutex(noOwner)).Code, "the model is for administrators")
	require.Empty(t, server.Services(lab))
	p.must(t, addMutex, mutex(noOwner))
}

func TestFailuresCanBeReworded(t *testing.T) {
	opt := basic()
	opt.Failures.AliasTaken = fakecloudshell.Failure{Code: 7, Message: "schon da"}
	p := admin(t, start(t, opt))
	p.must(t, addMutex, mutex(noOwner))
	require.Equal(t, opt.Failures.AliasTaken, p.refused(t, addMutex, mutex(noOwner)))
}

func TestWhoMayUseAReservation(t *testing.T) {
	server := start(t, basic())
	bob := logOn(t, server, "bob", "bob")
	for method, parameters := range map[string]string{
		addMutex:                        mutex(noOwner),
		"RemoveServicesFromReservation": removing("MUTEX"),
		"GetReservationDetails":         details,
		"GetReservationStatus":          details,
	} {
		require.Equal(t, 100, bob.refused(t, method, parameters).Code)
	}
	logOn(t, server, "ann", "a&<b>").must(t, addMutex, mutex(noOwner))
	require.NoError(t, server.AddReservation(fakecloudshell.Reservation{ID: "OPEN", Permitted: []string{"bob"}}))
	bob.must(t, "GetReservationStatus", param("reservationId", "open"))
}

func TestDomains(t *testing.T) {
	server := start(t, basic())
	p := newPeer(t, server)
	in := p.must(t, "Logon", credentials("admin", "s3cret", "Other"))
	require.Equal(t, "Other", in.Info.Domain.Name)
	p.token = in.Info.Token.Token
	p.must(t, "GetReservationStatus", param("reservationId", "other"))
	require.Equal(t, 100, p.refused(t, "GetReservationStatus", details).Code)

	opt := basic()
	opt.Policy.AnyDomain = true
	admin(t, start(t, opt)).must(t, "GetReservationStatus", param("reservationId", "other"))
}

func TestAnEndedReservation(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	p.must(t, addMutex, mutex(noOwner))
	require.NoError(t, server.EndReservation(lab))
	require.Contains(t, p.refused(t, addMutex, mutex(noOwner)).Message, "reservation has ended")
	require.Contains(t, p.refused(t, "RemoveServicesFromReservation", removing("MUTEX")).Message, "reservation has ended")
	r := p.must(t, "GetReservationDetails", details+fresh)
	require.Equal(t, "Completed", r.Info.Description.Status)
	require.Empty(t, r.Info.Description.Services)
	require.Equal(t, "Completed", p.must(t, "GetReservationStatus", details).Info.Slim.Status)
	require.Error(t, server.EndReservation("none"))
}

// Reservations do not share their services.
func TestReservationsAreSeparate(t *testing.T) {
	server := start(t, basic())
	require.NoError(t, server.AddReservation(fakecloudshell.Reservation{ID: "second"}))
	p := admin(t, server)
	p.must(t, addMutex, mutex(noOwner))
	second := param("reservationId", "second")
	p.must(t, addMutex, second+param("serviceName", "Plain")+param("alias", "MUTEX")+noOwner)
	require.Equal(t, "Plain", server.Services("second")[0].Model)
	p.must(t, "RemoveServicesFromReservation", second+"<services><string>MUTEX</string></services>")
	require.Len(t, server.Services(lab), 1)
	require.Empty(t, server.Services("none"))
}

func TestChangesBehindTheAPI(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	owner := map[string]string{fakecloudshell.OwnerAttribute: "portal"}
	require.NoError(t, server.PutService(lab, fakecloudshell.Service{Model: fakecloudshell.MutexModel, Alias: "MUTEX", Attributes: owner}))
	owner[fakecloudshell.OwnerAttribute] = "changed afterwards"
	require.Equal(t, "portal", p.services(t, fresh)[0].owner())
	require.NoError(t, server.PutService(lab, fakecloudshell.Service{Model: fakecloudshell.MutexModel, Alias: "MUTEX"}))
	require.Empty(t, p.services(t, fresh)[0].owner())
	require.NoError(t, server.DeleteService(lab, "MUTEX"))
	require.Error(t, server.DeleteService(lab, "MUTEX"))
	require.Error(t, server.DeleteService("none", "MUTEX"))
	require.Empty(t, p.services(t, fresh))
}
