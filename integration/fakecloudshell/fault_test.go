package fakecloudshell_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
)

// struck is a server on which the first add meets a fault, and what came of it.
func struck(t *testing.T, fault fakecloudshell.Fault) (*fakecloudshell.Server, *peer, reply, error) {
	t.Helper()
	server := start(t, basic())
	p := admin(t, server)
	server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Method: fakecloudshell.AddService, Nth: 1, Fault: fault}))
	r, err := p.call(within(t), addMutex, mutex(owned("x")))
	require.Equal(t, 1, server.Count(fakecloudshell.AddService), "a client that sends it twice would hide the fault")
	return server, p, r, err
}

func TestTheReplyIsLost(t *testing.T) {
	server, p, _, err := struck(t, fakecloudshell.Fault{Reply: fakecloudshell.Dropped})
	require.ErrorContains(t, err, "EOF")
	require.Len(t, server.Services(lab), 1)
	require.Equal(t, taken, p.refused(t, addMutex, mutex(owned("x"))).Message, "so one's own lock looks like another's")
	require.True(t, server.Requests()[1].Executed)
	require.Zero(t, server.Requests()[1].Status)
}

func TestTheRequestIsLost(t *testing.T) {
	server, p, _, err := struck(t, fakecloudshell.Fault{Execute: fakecloudshell.Never, Reply: fakecloudshell.Dropped})
	require.ErrorContains(t, err, "EOF")
	require.Empty(t, server.Services(lab))
	require.False(t, server.Requests()[1].Executed)
	p.must(t, addMutex, mutex(owned("x")))
}

func TestHTTPErrorsBeforeAndAfter(t *testing.T) {
	for execute, services := range map[fakecloudshell.Execution]int{fakecloudshell.Never: 0, fakecloudshell.AtOnce: 1} {
		server, _, r, err := struck(t, fakecloudshell.Fault{Execute: execute, Status: http.StatusServiceUnavailable})
		require.ErrorContains(t, err, "HTTP 503")
		require.Equal(t, "Service Unavailable\n", r.Body)
		require.Len(t, server.Services(lab), services)
		require.Equal(t, 503, server.Requests()[1].Status)
	}
}

func TestAnotherFailureIsTold(t *testing.T) {
	told := fakecloudshell.Failure{Code: 100, Message: "the database is busy"}
	server, _, r, err := struck(t, fakecloudshell.Fault{Failure: &told})
	require.NoError(t, err)
	require.Equal(t, []any{told.Code, told.Message}, []any{r.ErrorCode, *r.Error})
	require.Len(t, server.Services(lab), 1)
	require.Nil(t, server.Requests()[1].Failure, "the log has what really happened")
}

func TestACallIsCarriedOutLater(t *testing.T) {
	server, p, _, err := struck(t, fakecloudshell.Fault{Execute: fakecloudshell.OnceGone, Reply: fakecloudshell.Dropped})
	require.ErrorContains(t, err, "EOF")
	require.Empty(t, p.services(t, fresh))
	server.ExpireSessions() // it was let in before
	require.Equal(t, 1, server.Land())
	require.Equal(t, "x", server.Services(lab)[0].Attributes[fakecloudshell.OwnerAttribute])
	require.Zero(t, server.Land(), "only once")
	require.True(t, server.Requests()[1].Executed)
}

func TestLateCallsComeByThemselves(t *testing.T) {
	server, _, r, err := struck(t, fakecloudshell.Fault{Execute: fakecloudshell.OnceGone, Later: time.Millisecond})
	require.NoError(t, err)
	require.True(t, r.Success, "an answer without an execution is a success")
	require.NoError(t, server.Wait(within(t), fakecloudshell.Executed(fakecloudshell.AddService, 1)))
	require.Len(t, server.Services(lab), 1)
	require.Zero(t, server.Land())
}

// Late calls fail as others do: the lock has another holder by then.
func TestALateCallFindsTheAliasTaken(t *testing.T) {
	server, p, _, _ := struck(t, fakecloudshell.Fault{Execute: fakecloudshell.OnceGone, Reply: fakecloudshell.Dropped})
	p.must(t, addMutex, mutex(owned("y")))
	require.Equal(t, 1, server.Land())
	require.Equal(t, taken, server.Requests()[1].Failure.Message)
	require.Equal(t, "y", server.Services(lab)[0].Attributes[fakecloudshell.OwnerAttribute])
}

func TestTheConnectionBreaksInTheAnswer(t *testing.T) {
	server, _, r, err := struck(t, fakecloudshell.Fault{Reply: fakecloudshell.Torn})
	require.ErrorContains(t, err, "unexpected EOF")
	require.Equal(t, 200, r.Status)
	require.NotEmpty(t, r.Body)
	require.NotContains(t, r.Body, "</Response>")
	require.Len(t, server.Services(lab), 1)
}

func TestThereIsNoAnswer(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Fault: fakecloudshell.Fault{Reply: fakecloudshell.Withheld}}))
	ctx, cancel := context.WithCancel(within(t))
	failed := make(chan error)
	go func() {
		_, err := p.call(ctx, addMutex, mutex(noOwner))
		failed <- err
	}()
	require.NoError(t, server.Wait(within(t), fakecloudshell.Executed(fakecloudshell.AddService, 1)))
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	require.NoError(t, server.Wait(within(t), func(log []fakecloudshell.Request) bool { return log[1].Done }))
	require.Zero(t, server.Requests()[1].Status)
}

// A request that its client gave up is carried out all the same.
func TestARequestOutlivesItsClient(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	gate := make(chan struct{})
	hold := fakecloudshell.Fault{Hold: fakecloudshell.Pause{Until: gate}}
	server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Method: fakecloudshell.AddService, Fault: hold}))
	ctx, cancel := context.WithCancel(within(t))
	failed := make(chan error)
	go func() {
		_, err := p.call(ctx, addMutex, mutex(noOwner))
		failed <- err
	}()
	require.NoError(t, server.Wait(within(t), fakecloudshell.Arrived(fakecloudshell.AddService, 1)))
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	require.Empty(t, server.Services(lab))
	close(gate)
	require.NoError(t, server.Wait(within(t), fakecloudshell.Executed(fakecloudshell.AddService, 1)))
	require.Len(t, server.Services(lab), 1)
}

func TestPausesEnd(t *testing.T) {
	open := make(chan struct{})
	close(open)
	for _, pause := range []fakecloudshell.Pause{{For: time.Nanosecond}, {Until: open}, {For: time.Hour, Until: open}} {
		for _, fault := range []fakecloudshell.Fault{{Hold: pause}, {HoldReply: pause}} {
			_, _, r, err := struck(t, fault)
			require.NoError(t, err)
			require.True(t, r.Success)
		}
	}
}

func TestAnAnswerThatIsHeldBackWaitsForItsClientOnly(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	held := fakecloudshell.Fault{HoldReply: fakecloudshell.Pause{For: time.Hour}}
	server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Fault: held}))
	ctx, cancel := context.WithCancel(within(t))
	go p.call(ctx, addMutex, mutex(noOwner))
	require.NoError(t, server.Wait(within(t), fakecloudshell.Executed(fakecloudshell.AddService, 1)))
	cancel()
	require.NoError(t, server.Wait(within(t), func(log []fakecloudshell.Request) bool { return log[1].Done }))
}

func TestRules(t *testing.T) {
	add, remove := fakecloudshell.AddService, fakecloudshell.RemoveServices
	status := func(s int) fakecloudshell.Fault { return fakecloudshell.Fault{Status: s} }
	inject := fakecloudshell.Rules(
		fakecloudshell.Rule{Method: add, Nth: 2, Fault: status(1)},
		fakecloudshell.Rule{Match: func(c fakecloudshell.Call) bool { return strings.Contains(c.Body, "BREAK") }, Fault: status(2)},
		fakecloudshell.Rule{Nth: 4, Fault: status(3)},
		fakecloudshell.Rule{Method: remove, Nth: 2, Fault: status(4)},
	)
	var got []int
	for _, c := range []fakecloudshell.Call{
		{Method: remove}, {Method: add}, {Method: add}, {Method: remove}, {Method: add}, {Method: add, Body: "BREAK"}, {Method: remove},
	} {
		got = append(got, inject(c).Status)
	}
	require.Equal(t, []int{0, 0, 1, 3, 0, 2, 0}, got, "a rule counts what it fits, also if another rule struck")
}

func TestInjectCanBeTakenBack(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	server.Inject(func(c fakecloudshell.Call) fakecloudshell.Fault {
		require.Equal(t, "admin", c.User)
		require.Equal(t, c.Nth, c.N, "the first request was another method")
		return fakecloudshell.Fault{Status: 500}
	})
	for range 2 {
		_, err := p.call(within(t), addMutex, mutex(noOwner))
		require.Error(t, err)
	}
	server.Inject(nil)
	require.Len(t, p.services(t, fresh), 1)
}

func TestRandomFaultsAreThoseOfTheSeed(t *testing.T) {
	odds := fakecloudshell.Odds{Lost: 0.2, Failed: 0.2, Dropped: 0.2, Unavailable: 0.1, Late: 0.2, Later: time.Second}
	draw := func(seed uint64) map[string]int {
		counts, inject := map[string]int{}, fakecloudshell.Random(seed, odds)
		for range 1000 {
			f := inject(fakecloudshell.Call{})
			counts[[]string{"now", "never", "later"}[f.Execute]+[]string{"", " dropped"}[f.Reply]+http.StatusText(f.Status)]++
			if f.Execute == fakecloudshell.OnceGone {
				require.Positive(t, f.Later)
				require.LessOrEqual(t, f.Later, time.Second+1)
			}
		}
		return counts
	}
	counts := draw(1)
	require.Equal(t, counts, draw(1))
	require.NotEqual(t, counts, draw(2))
	require.Len(t, counts, 6)
	for kind, expected := range map[string]int{
		"now": 100, "now dropped": 200, "nowInternal Server Error": 200, "never dropped": 200, "neverService Unavailable": 100, "later dropped": 200,
	} {
		require.InDelta(t, expected, counts[kind], 60, kind)
	}
}

func TestFaultsOfRequestsThatAreNotCarriedOutAnyway(t *testing.T) {
	server := start(t, basic())
	p := newPeer(t, server)
	server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Fault: fakecloudshell.Fault{Execute: fakecloudshell.OnceGone}}))
	_, err := p.call(within(t), addMutex, mutex(noOwner))
	require.ErrorContains(t, err, "HTTP 401")
	require.Zero(t, server.Land())
	server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Fault: fakecloudshell.Fault{Reply: fakecloudshell.Dropped}}))
	_, err = p.call(within(t), addMutex, mutex(noOwner))
	require.ErrorContains(t, err, "EOF")
}
