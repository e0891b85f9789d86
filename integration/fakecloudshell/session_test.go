package fakecloudshell_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
)

func TestLogonGivesATokenOfItsOwnEachTime(t *testing.T) {
	server := start(t, basic())
	p := newPeer(t, server)
	one := p.must(t, "Logon", credentials("ann", "a&<b>", "Global"))
	two := p.must(t, "Logon", credentials("ann", "a&<b>", "Global"))
	require.Equal(t, "LogonResponseInfo", one.Info.Type)
	require.NotEqual(t, one.Info.Token.Token, two.Info.Token.Token)
	require.True(t, strings.HasSuffix(one.Info.Token.Token, "=="), "so that a client that splits at each = is found out")
	for _, r := range []reply{one, two} {
		p.token = r.Info.Token.Token
		p.services(t, fresh)
	}
}

func TestLongTokens(t *testing.T) {
	opt := basic()
	opt.Policy.LongTokens = true
	p := admin(t, start(t, opt))
	require.Len(t, p.token, 900)
	p.services(t, fresh)
}

func TestBadCredentialsAreRefusedInHTTP200(t *testing.T) {
	server := start(t, basic())
	for parameters, code := range map[string]int{
		credentials("ann", "wrong", ""):      118,
		credentials("nobody", "wrong", ""):   100,
		credentials("", "", ""):              100,
		credentials("ann", "a&<b>", "Other"): 100,
		credentials("ann", "a&<b>", "None"):  100,
	} {
		require.Equal(t, code, newPeer(t, server).refused(t, "Logon", parameters).Code, parameters)
	}
}

func TestWhatTheHeaderSaysAtLogonDoesNotMatter(t *testing.T) {
	server := start(t, basic())
	for _, header := range []string{"", "Token=null", "MachineName=x;Token=", "Token=Unset;MachineName=x", "Username=a;MachineName=b;LoggedInDomainId=c", "=;;=="} {
		p := newPeer(t, server)
		p.header = http.Header{"Authorization": {header}}
		p.must(t, "Logon", credentials("bob", "bob", ""))
	}
}

func TestAuthorizationIsReadByKey(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	for _, form := range []string{"MachineName=x:8029;Token=%", "Token=%;MachineName=x", "token=%", " TOKEN = % ; other=a=b"} {
		p.header = http.Header{"Authorization": {strings.ReplaceAll(form, "%", p.token)}}
		p.services(t, fresh)
	}
	for _, form := range []string{"", "%", "Token", "Token=", "Token=%=", "Bearer %", "MachineName=%"} {
		p.header = http.Header{"Authorization": {strings.ReplaceAll(form, "%", p.token)}}
		r, err := p.post(within(t), "GetReservationDetails", "<GetReservationDetails>"+details+"</GetReservationDetails>")
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, r.Status, form)
	}
}

func TestSessionsEndByTime(t *testing.T) {
	opt, now := basic(), newClock()
	opt.Now = now.Now
	server := start(t, opt)
	p := admin(t, server)
	now.pass(5*time.Hour - 1)
	p.services(t, fresh)
	now.pass(1)
	_, err := p.call(within(t), "GetReservationDetails", details)
	require.ErrorContains(t, err, "HTTP 401")
	admin(t, server).services(t, fresh)
}

func TestADeadTokenIsAnsweredAsThePolicySays(t *testing.T) {
	opt := basic()
	opt.Policy.DeadTokens = fakecloudshell.Code118
	opt.Failures.DeadToken = fakecloudshell.Failure{Code: 118, Message: "log on first"}
	server := start(t, opt)
	p := admin(t, server)
	server.ExpireSessions()
	require.Equal(t, opt.Failures.DeadToken, p.refused(t, addMutex, mutex(noOwner)))
	require.Empty(t, server.Services(lab))
	last := server.Requests()[1]
	require.False(t, last.Executed)
	require.Equal(t, 118, last.Failure.Code)
}

func TestLogoffEndsOneSession(t *testing.T) {
	server := start(t, basic())
	p, other := admin(t, server), admin(t, server)
	p.must(t, "Logoff", "")
	_, err := p.call(within(t), "GetReservationDetails", details)
	require.ErrorContains(t, err, "HTTP 401")
	other.services(t, fresh)

	third := admin(t, server)
	other.must(t, "Logoff", param("token", third.token))
	_, err = third.call(within(t), "GetReservationDetails", details)
	require.ErrorContains(t, err, "HTTP 401")
	other.services(t, fresh)
}

// A script gets a token with its command. What it makes of it ends with the command.
func TestCommandTokens(t *testing.T) {
	server := start(t, basic())
	command, err := server.RunCommand("ann")
	require.NoError(t, err)
	p := newPeer(t, server)
	p.token = command.Token()
	_, err = p.call(within(t), "GetReservationDetails", details)
	require.ErrorContains(t, err, "HTTP 401", "it is no session itself")

	first := p.must(t, "SecureLogon", param("token", command.Token())+param("domainName", "Global"))
	require.Equal(t, "LogonResponseInfo", first.Info.Type)
	require.NotEqual(t, command.Token(), first.Info.Token.Token)
	p.token = first.Info.Token.Token
	p.services(t, fresh)
	second := p.must(t, "SecureLogon", param("token", p.token)) // a session's own token does as well
	command.End()
	for _, token := range []string{first.Info.Token.Token, second.Info.Token.Token} {
		p.token = token
		_, err = p.call(within(t), "GetReservationDetails", details)
		require.ErrorContains(t, err, "HTTP 401")
		require.Equal(t, 118, p.refused(t, "SecureLogon", param("token", token)).Code)
	}
	require.Equal(t, 118, p.refused(t, "SecureLogon", param("token", command.Token())).Code)
	_, err = server.RunCommand("nobody")
	require.Error(t, err)
}

func TestExpiredSessionsLeaveTheCommandAlive(t *testing.T) {
	server := start(t, basic())
	command, err := server.RunCommand("ann")
	require.NoError(t, err)
	p := newPeer(t, server)
	p.must(t, "SecureLogon", param("token", command.Token()))
	server.ExpireSessions()
	p.must(t, "SecureLogon", param("token", command.Token()))
}

func TestLogoffMayEndTheCommand(t *testing.T) {
	for _, ends := range []bool{false, true} {
		opt := basic()
		opt.Policy.LogoffEndsCommand = ends
		server := start(t, opt)
		command, err := server.RunCommand("ann")
		require.NoError(t, err)
		p := newPeer(t, server)
		p.token = p.must(t, "SecureLogon", param("token", command.Token())).Info.Token.Token
		p.must(t, "Logoff", "")
		again, err := p.call(within(t), "SecureLogon", param("token", command.Token()))
		require.NoError(t, err)
		require.Equal(t, !ends, again.Success)
	}
}
