package cli_test

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
	"github.com/multilock/go/integration/fakecloudshell"
)

func aliases(server *fakecloudshell.Server) []string {
	names := []string{}
	for _, s := range server.Services(sandbox) {
		names = append(names, s.Alias)
	}
	slices.Sort(names)
	return names
}

// Without -n and -g the lock is the one that scripts use; alias= selects another one.
func TestCloudshellLocksTheMutexOfScripts(t *testing.T) {
	t.Parallel()
	s, server := cloudshellStation(t)
	holder := s.hold()
	require.Contains(t, aliases(server), "MUTEX")
	require.Equal(t, "held", s.lock("MUTEX").State)
	got := s.run("run", "--", "true")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, `lock "MUTEX" is held by`)
	require.Zero(t, holder.end().code)
	require.NotContains(t, aliases(server), "MUTEX")

	require.NoError(t, server.PutService(sandbox, fakecloudshell.Service{Model: fakecloudshell.MutexModel, Alias: "MUTEX"}))
	got = s.run("run", "--", "true")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, "it was taken by a script that names no owner")
	other := s.with("MULTILOCK_SOURCE=" + sourceOf(s) + "&alias=OTHER")
	require.Equal(t, "OTHER\n", other.must("run", "--", "sh", "-c", "echo $MULTILOCK_NAME"))
	require.Equal(t, "G x\n", other.must("run", "-g", "G", "-n", "x", "--", "sh", "-c", "echo $MULTILOCK_GROUP $MULTILOCK_NAME"))
	require.Equal(t, "U OTHER\n", other.with("MULTILOCK_SOURCE="+sourceOf(other)+"&group=U").must("run", "--", "sh", "-c", "echo $MULTILOCK_GROUP $MULTILOCK_NAME"))
	got = other.run("status", "--source", sourceOf(other)+"&group=U", "-g", "G")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, `the group is "U" in the URL and "G" in -g or MULTILOCK_GROUP`)
}

// sourceOf returns the URL of a station's source.
func sourceOf(s *station) string {
	for _, entry := range slices.Backward(s.vars) {
		if url, found := strings.CutPrefix(entry, "MULTILOCK_SOURCE="); found {
			return url
		}
	}
	return ""
}

// In a script of CloudShell the URL is "cloudshell:", and everything else comes from the environment.
// Output names the reservation, because it may be read elsewhere.
func TestCloudshellInAScript(t *testing.T) {
	t.Parallel()
	server := newCloudshell(t, fakecloudshell.HTTP)
	command, err := server.RunCommand("admin")
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(server.Address())
	require.NoError(t, err)
	connectivity := fmt.Sprintf(`{"serverAddress": "%s:%s", "tsAPIScheme": "http", "adminUser": "admin", "adminPass": %q, "adminAuthToken": %q}`, host, port, password, command.Token())
	reservation := fmt.Sprintf(`{"id": %q, "domain": "Global"}`, sandbox)
	for name, vars := range map[string][]string{
		"upper case": {"QUALICONNECTIVITYCONTEXT=" + connectivity, "RESERVATIONCONTEXT=" + reservation},
		"lower case": {"qualiconnectivitycontext=" + connectivity, "reservationcontext=" + reservation},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t, vars...)
			s.secrets = append(s.secrets, command.Token())
			require.Equal(t, "MUTEX\n", s.must("run", "--source", "cloudshell:", "--", "sh", "-c", "echo $MULTILOCK_NAME"))
			require.Contains(t, s.must("status", "--source", "cloudshell:"), "nothing is held in cloudshell://"+server.Address()+"/"+sandbox+"?scheme=http\n")
			token := strings.TrimSpace(s.must("acquire", "--source", "cloudshell:", "--detach", "--ttl", "1h"))
			got := s.run("run", "--source", "cloudshell:", "--", "true")
			require.Equal(t, 121, got.code)
			require.Contains(t, got.stderr, "multilock --source 'cloudshell://"+server.Address()+"/"+sandbox+"?scheme=http' break MUTEX")
			s.must("release", "--source", "cloudshell://"+server.Address()+"/"+sandbox+"?scheme=http", "-n", "MUTEX", "--token", token)
		})
	}
	got := newStation(t).run("run", "--source", "cloudshell:", "--", "true")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "this is not the environment of a CloudShell script")
}

// The token of a script ends with the script. A holder then loses its lock, and the token is never
// printed.
func TestCloudshellCommandEnds(t *testing.T) {
	t.Parallel()
	server := newCloudshell(t, fakecloudshell.HTTP)
	command, err := server.RunCommand("admin")
	require.NoError(t, err)
	s := newStation(t, fmt.Sprintf(`QUALICONNECTIVITYCONTEXT={"serverAddress": %q, "tsAPIScheme": "http", "adminAuthToken": %q}`, server.Address(), command.Token()),
		fmt.Sprintf(`RESERVATIONCONTEXT={"id": %q}`, sandbox), "MULTILOCK_SOURCE=cloudshell:")
	s.secrets = append(s.secrets, command.Token())
	holder := s.hold("--ttl", "1s", "--json", "-v")
	command.End()
	server.ExpireSessions()
	got := holder.wait()
	require.Equal(t, 122, got.code, got.stderr)
	require.Contains(t, got.stderr, "is lost")
	got = s.run("status")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "the token ends with the command that got it")
}

// There is one warning about an unencrypted connection. A proxy from the environment is not used,
// because it would get the password.
func TestCloudshellInClear(t *testing.T) {
	t.Parallel()
	server := newCloudshell(t, fakecloudshell.HTTP)
	proxy, asked := startProxy(t, server.Address())
	far := strings.Replace(cloudshellURL(server), server.Address(), "quali.invalid", 1)
	s := newStation(t, "MULTILOCK_PASSWORD="+password, "http_proxy="+proxy, "https_proxy="+proxy, "ALL_PROXY="+proxy, "MULTILOCK_SOURCE="+far)
	got := s.run("run", "--", "true")
	require.Equal(t, 125, got.code)
	require.Equal(t, 1, strings.Count(got.stderr, "warning: nothing is encrypted on the way to quali.invalid"), got.stderr)
	require.Zero(t, asked.Load(), "the proxy got the password")
	require.Equal(t, ended{}, s.with("MULTILOCK_SOURCE="+cloudshellURL(server)).run("run", "--", "true"), "no warning on the loopback interface")
}

// No fault of the server makes a command hang or print the password.
func TestCloudshellTroubles(t *testing.T) {
	t.Parallel()
	s, server := cloudshellStation(t)
	good := sourceOf(s)
	mute := newCloudshell(t, fakecloudshell.HTTP)
	mute.Inject(func(fakecloudshell.Call) fakecloudshell.Fault {
		return fakecloudshell.Fault{Reply: fakecloudshell.Withheld}
	})
	gone := strings.Replace(good, server.Address(), deaf(t), 1)
	for name, c := range map[string]struct {
		vars []string
		want string
	}{
		"wrong password":      {[]string{"MULTILOCK_PASSWORD=s3cret/and@longer"}, "check the password of admin, and that the user belongs to the domain Global"},
		"no password":         {[]string{"MULTILOCK_PASSWORD="}, "there is no password for the user admin: put it into the variable MULTILOCK_PASSWORD, or into a file that MULTILOCK_PASSWORD_FILE names"},
		"nobody listens":      {[]string{"MULTILOCK_SOURCE=" + gone}, "connection refused"},
		"never answers":       {[]string{"MULTILOCK_SOURCE=" + cloudshellURL(mute) + "&timeout=200ms"}, "deadline exceeded"},
		"unknown authority":   {[]string{"MULTILOCK_SOURCE=" + strings.Split(good, "&cafile")[0]}, "certificate"},
		"no certificates":     {[]string{"MULTILOCK_SOURCE=" + strings.Split(good, "&cafile")[0] + "&cafile=/nonexistent"}, "read cafile"},
		"unknown reservation": {[]string{"MULTILOCK_SOURCE=" + strings.Replace(good, sandbox, "7b3c9ad2-0000-4c0d-9c56-0f0d4a9b2e11", 1)}, "reservation"},
		"unknown parameter":   {[]string{"MULTILOCK_SOURCE=" + good + "&allias=X"}, `cloudshell URL parameter "allias": is unknown; there are domain, alias`},
		"no such user":        {[]string{"MULTILOCK_SOURCE=" + strings.Replace(good, "admin@", "eve@", 1)}, "check the password of eve"},
		"whole URL":           {[]string{"MULTILOCK_PASSWORD=", "MULTILOCK_SOURCE=" + strings.Replace(gone, "admin@", "admin:"+escaped+"@", 1)}, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &station{t, append(slices.Clip(s.vars), c.vars...), s.secrets}
			s.requireTrouble(c.want)
		})
	}
}

// requireTrouble requires that all kinds of commands report the problem.
func (s *station) requireTrouble(want string) {
	s.Helper()
	for _, command := range [][]string{{"run", "--json", "-v", "--", "echo", "never"}, {"status", "--json"}, {"doctor"}, {"doctor", "--json"}} {
		got := s.run(command...)
		require.Equal(s, 125, got.code, "%v: %s%s", command, got.stdout, got.stderr)
		require.Contains(s, strings.ReplaceAll(clitest.OneLine(got.stdout+got.stderr), `\"`, `"`), want, command) // with --json, too
		require.NotContains(s, got.stdout, "never")
	}
}

// The password can also come from a file, and jobs do not get it.
func TestCloudshellPasswordIsKept(t *testing.T) {
	t.Parallel()
	s, _ := cloudshellStation(t)
	file := s.write(password + "\n")
	fromFile := s.with("MULTILOCK_PASSWORD=", "MULTILOCK_PASSWORD_FILE="+file)
	require.NotContains(t, s.must("run", "--", "env"), "MULTILOCK_PASSWORD")
	whole := s.with("MULTILOCK_PASSWORD=", "MULTILOCK_SOURCE="+strings.Replace(sourceOf(s), "admin@", "admin:"+escaped+"@", 1))
	require.Contains(t, whole.must("run", "--", "env"), "MULTILOCK_SOURCE="+sourceOf(s)+"\n")

	// A job that uses the same source finds the password in the file.
	require.Contains(t, fromFile.must("run", "--", "multilock", "status"), "held")
	got := s.run("run", "--", "multilock", "status")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "there is no password for the user admin")
}

// CloudShell has only locks. A command that needs more fails before it does anything, and says what is
// missing and what to use instead.
func TestCloudshellIsALock(t *testing.T) {
	t.Parallel()
	s, server := cloudshellStation(t)
	list := s.write("a\ttrue\n")
	const instead = " (a CloudShell sandbox has the lock alone: "
	for command, lack := range map[string]string{
		"run -n x --once -- true":         "run: --once: this source keeps no results of jobs",
		"run -n x --every 1h -- true":     "run: --every: this source keeps no results of jobs",
		"run -n x --fail-after 2 -- true": "run: --fail-after: this source keeps no history",
		"-g g batch " + list:              "batch: this source keeps no results of jobs",
		"-g g wait --members x -t 1s":     "wait: this source keeps no results of jobs",
		"status --results":                "status: --results: this source keeps no results of jobs",
		"history":                         "history: this source keeps no history",
		"metrics":                         "metrics: this source keeps no history",
		"clean --results x":               "clean: --results: this source keeps no results of jobs",
	} {
		got := s.run(strings.Fields(command)...)
		require.Equal(t, 125, got.code, "%s: %s%s", command, got.stdout, got.stderr)
		require.Contains(t, got.stderr, lack+instead, command)
		require.Contains(t, got.stderr, "use a directory, MongoDB, etcd or PostgreSQL for that", command)
	}
	require.Empty(t, aliases(server))
	got := s.run("overdue")
	require.Equal(t, 3, got.code, "a Nagios plugin reports UNKNOWN")
	require.Contains(t, got.stdout, "overdue: this source keeps no results of jobs"+instead)
	got = s.run("run", "-n", "x", "--fair", "-w", "1m", "--", "true")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "has no queue (")

	s.must("report", "-o", t.TempDir()+"/page.html")
	holder := s.hold("-n", "x")
	require.Equal(t, "held", s.lock("x").State)
	require.Equal(t, 124, s.run("wait", "--timeout", "300ms").code)
	require.Zero(t, holder.end().code)
	s.must("wait")
	s.must("run", "-n", "x", "--slots", "2", "--", "true")
}

// doctor reports which guarantees CloudShell gives and which it lacks.
func TestCloudshellGuarantees(t *testing.T) {
	t.Parallel()
	s, _ := cloudshellStation(t)
	got := s.run("doctor", "--json")
	require.Zero(t, got.code, got.stdout)
	var report struct {
		Guarantees []struct {
			Trait string
			Kept  *bool
			Why   string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	lacking := []string{}
	for _, p := range report.Guarantees {
		require.NotNil(t, p.Kept, p.Trait)
		if !*p.Kept {
			lacking = append(lacking, p.Trait)
			require.NotEmpty(t, p.Why, p.Trait)
		}
	}
	require.ElementsMatch(t, []string{"job mark", "queue", "results", "manifest", "history"}, lacking)
}
