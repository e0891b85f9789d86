//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/jointest"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock/source"
)

func (p *program) doctor(args ...string) (code int, report command.DoctorReport) {
	p.t.Helper()
	got := p.run(append([]string{"doctor", "--json"}, args...)...)
	require.NoError(p.t, json.Unmarshal([]byte(got.stdout), &report), got.stderr)
	require.Equal(p.t, got.code, report.Exit)
	return got.code, report
}

func subjects(found []source.Finding) []string {
	var all []string
	for _, f := range found {
		all = append(all, string(f.Severity)+" "+f.Subject)
	}
	return all
}

// A directory is examined, and nothing is left in it but what every use makes.
func TestDoctorOfADirectory(t *testing.T) {
	p := newProgram(t)
	code, report := p.doctor("-d", p.base)
	require.Equal(t, p.base, report.Base)
	require.Equal(t, ".locks", report.Group)
	require.NotEmpty(t, report.Host)
	require.Subset(t, subjects(report.Findings), []string{"fine mount", "fine rules", "fine clock", "fine trial", "fine run"})
	require.Equal(t, code == 1, len(report.Findings) > 5, "whether it warns depends on where the tests run")
	require.Len(t, report.Promises, len(source.Traits()))
	for _, promise := range report.Promises {
		require.NotNil(t, promise.Kept, promise.Trait)
		require.True(t, *promise.Kept, promise.Trait)
	}
	for dir, want := range map[string][]string{".": {".locks", ".multilock"}, ".locks": {}, ".multilock/staging": {}} {
		require.Equal(t, want, namesIn(t, filepath.Join(p.base, dir)))
	}
	text := p.run("doctor", "-d", p.base)
	require.Equal(t, code, text.code)
	require.Regexp(t, `(?m)^fine      rules: directories and files that are there are not replaced`, text.stdout)
	require.Regexp(t, `(?m)^What .*/\.locks promises:$`, text.stdout)
	require.Regexp(t, `(?m)^fence numbers +yes  `, text.stdout)
	require.NotContains(t, p.run("doctor", "-q", "-d", p.base).stdout, "fine")
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The exit code is that of the worst finding.
func TestVerdictOfTheDoctor(t *testing.T) {
	p := newProgram(t)
	p.vars[place.EnvSource] = p.url("full")
	require.Zero(t, p.run("doctor").code)
	p.findings = []source.Finding{{Subject: "weather", Severity: source.SeverityWarning, Text: "it rains", Advice: "stay in"}}
	got := p.run("doctor", "-q")
	require.Equal(t, ran{1, "warning   weather: it rains\n          stay in\n", "multilock: there is one warning about " + p.url("full") + ", group .locks\n"}, got)
	p.findings = append(p.findings, source.Finding{Subject: "house", Severity: source.SeverityUnusable, Text: "it burns"})
	code, report := p.doctor()
	require.Equal(t, 125, code)
	require.Equal(t, []string{"warning weather", "unusable house"}, subjects(report.Findings), "no lock was tried")
	require.Contains(t, p.run("doctor").stderr, "multilock: locks in "+p.url("full")+", group .locks cannot be relied on\n")
}

// A source that says nothing of itself is tried all the same.
func TestDoctorOfASilentSource(t *testing.T) {
	p := newProgram(t)
	code, report := p.doctor("--source", p.url("bare"))
	require.Zero(t, code)
	require.Equal(t, []string{"fine trial", "fine run"}, subjects(report.Findings))
	for _, promise := range report.Promises {
		require.Nil(t, promise.Kept)
	}
	require.Regexp(t, `(?m)^fence numbers +\?  -$`, p.must("doctor", "--source", p.url("bare")))
}

func TestDoctorOfNoPlace(t *testing.T) {
	p := newProgram(t)
	code, report := p.doctor("-d", "/nonexistent/dir")
	require.Equal(t, 125, code)
	require.Equal(t, []string{"unusable source"}, subjects(report.Findings))
	require.Empty(t, report.Promises)

	code, report = p.doctor("--source", "silent://host", "--timeout", "10ms")
	require.Equal(t, 125, code)
	require.Contains(t, report.Findings[0].Text, "there was no answer in the time of --wait")
	for _, args := range [][]string{{"doctor", "x"}, {"doctor", "--timeout", "0"}} {
		require.Equal(t, 125, p.run(args...).code)
	}
}

// Who waits in vain is told what to compare, and is not told that all is well.
func TestDoctorThatNobodyJoins(t *testing.T) {
	p := newProgram(t)
	code, report := p.doctor("-d", p.base, "--join", "--timeout", "1s")
	require.Equal(t, 125, code)
	last := report.Findings[len(report.Findings)-1]
	require.Equal(t, "join", last.Subject)
	require.Regexp(t, `^no other host showed up in 1s; this host looks at `+regexp.QuoteMeta(p.base)+`/\.locks; .*; its inode is [1-9]\d*$`, last.Text)
	require.Equal(t, &jointest.Report{Expect: 2, Account: jointest.Account{Fences: []uint64{}, Clock: report.Join.Clock}, Hosts: []jointest.Host{}}, report.Join)
	require.NotNil(t, report.Join.Clock)
	got := p.run("doctor", "-q", "-d", p.base, "--join", "--timeout", "1s")
	require.Equal(t, 125, got.code)
	require.Equal(t, "multilock: it was not shown that locks in "+filepath.Join(p.base, ".locks")+" keep hosts apart\n", got.stderr)
	for _, args := range [][]string{{"--expect", "2"}, {"--join", "--expect", "1"}, {"--join", "--expect", "x"}, {"--join", "--timeout", "0"}} {
		require.Equal(t, 125, p.run(append([]string{"doctor", "-d", p.base}, args...)...).code, args)
	}
}

// What a source lacks is told by name.
func TestDoctorWhereNobodyCanJoin(t *testing.T) {
	p := newProgram(t)
	code, report := p.doctor("--join", "--source", "cook+file://"+p.base+"?period=1h")
	require.Equal(t, 125, code)
	require.Contains(t, report.Findings[len(report.Findings)-1].Text, "doctor: --join: this source frees no lock before its time is over")
	p.promises = []source.Promise{{Trait: source.TraitBreakByEvidence, Why: "it has no owners"}}
	code, report = p.doctor("--join", "--source", p.url("full"))
	require.Equal(t, 125, code)
	require.Contains(t, report.Findings[len(report.Findings)-1].Text, "does not tell whether a holder is dead (it has no owners)")
	require.Nil(t, report.Join)
}

// On a command line everybody can see a secret with ps; in the environment it is
// where it belongs.
func TestSecretsOnTheCommandLine(t *testing.T) {
	for _, form := range []string{"full://ada:top@host:8029%s", "full://ada@host:8029%s?token=top"} {
		p := newProgram(t)
		url := strings.Replace(form, "%s", p.base, 1)
		got := p.run("status", "--source", url)
		require.Equal(t, ran{125, "", "multilock: status: --source " + p.url("full") +
			": there is a secret in it, which everybody on this host can read with ps; leave it out there, and put it into the variable MULTILOCK_PASSWORD, " +
			"or into a file that MULTILOCK_PASSWORD_FILE names, or the whole URL into MULTILOCK_SOURCE\n"}, got)
		p.requireUntouched()

		p.vars[place.EnvSource] = url
		require.Contains(t, p.must("status"), "nothing is held in "+p.url("full")+", group .locks\n")
		require.Equal(t, url, p.opened)
		p.must("status", "--source", p.url("full"))
		require.Equal(t, url, p.opened, "the same without its secret: a command from a message")
		p.must("status", "--source", p.url("full")+"?x=y")
		require.NotContains(t, p.opened, "top", "that is another one")
	}
}

func TestPasswordPlaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("from file\r\nno more\n"), 0o600))
	p := newProgram(t)
	with := func(password string) string { return "full://ada:" + password + "@host:8029" + p.base }
	p.vars[place.EnvPasswordFile] = file
	p.must("status", "--source", p.url("full"))
	require.Equal(t, with("from%20file"), p.opened)
	p.vars[place.EnvPassword] = "p@/?#:w"
	p.must("status", "--source", p.url("full"))
	require.Equal(t, with("p%40%2F%3F%23%3Aw"), p.opened)
	p.vars[place.EnvSource] = with("own")
	p.must("status")
	require.Equal(t, with("own"), p.opened)
	p.must("status", "--source", "full://host:8029"+p.base)
	require.Equal(t, "full://host:8029"+p.base, p.opened, "a password belongs to a user")

	delete(p.vars, place.EnvPassword)
	p.vars[place.EnvPasswordFile] = "/nonexistent"
	got := p.run("status", "--source", "full://eve@host:8029"+p.base)
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "read the password from the file that MULTILOCK_PASSWORD_FILE names: open /nonexistent: ")
}

// The rule is that of psql and libpq for their files with secrets.
func TestPasswordFileThatOthersMayRead(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files away")
	}
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	p := newProgram(t)
	p.vars[place.EnvPasswordFile] = file
	for _, c := range []struct {
		owner   int
		mode    os.FileMode
		refused bool
	}{
		{0, 0o600, false}, {0, 0o400, false}, {0, 0o640, false}, {0, 0o644, true}, {0, 0o660, true}, {0, 0o602, true},
		{65533, 0o600, false}, {65533, 0o640, true}, {65533, 0o604, true},
	} {
		require.NoError(t, os.Chown(file, c.owner, c.owner))
		require.NoError(t, os.Chmod(file, c.mode))
		got := p.run("status", "--source", p.url("full"))
		if !c.refused {
			require.Zero(t, got.code, "%d %o: %s", c.owner, c.mode, got.stderr)
			continue
		}
		require.Equal(t, 125, got.code, "%d %o", c.owner, c.mode)
		require.Contains(t, got.stderr, fmt.Sprintf("%s: others may read or write it (mode %04o): chmod 600", file, c.mode))
		require.NotContains(t, got.stdout+got.stderr, "secret")
	}
}

// A library may well put the URL that it was given into its errors.
func TestErrorsOfLibrariesHaveNoSecrets(t *testing.T) {
	p := newProgram(t)
	for _, password := range []string{"top", "t%6Fp"} {
		p.vars[place.EnvSource] = "broken://ada:" + password + "@host"
		for _, command := range []string{"status", "doctor", "doctor --json"} {
			got := p.run(strings.Fields(command)...)
			require.Equal(t, 125, got.code)
			require.Contains(t, got.stdout+got.stderr, "dial broken://ada:...@host: no such host")
			require.NotContains(t, got.stdout+got.stderr, password)
		}
	}
}

func TestPlacesThatCannotBe(t *testing.T) {
	p := newProgram(t)
	p.vars[place.EnvDir] = p.base
	for args, want := range map[string]string{
		"status -d x --source file:y":                "status: -d and --source contradict each other: -d DIRECTORY stands for --source file:DIRECTORY",
		"-d x status --source bare://host/x":         "status: -d and --source contradict each other",
		"status -g G --source bare://host/x":         "status: --group: there are no groups in bare://host/x",
		"status --legacy-peers --source full://h/x":  "status: --legacy-peers: the Python MultiLock knows no other locks than those of a directory (-d)",
		"status --source other://ada:top@h/x":        `status: --source "other://ada@h/x": unknown kind of source; this multilock knows file:DIRECTORY, cloudshell://USER@HOST/RESERVATION`,
		"status --source full://ada:1/top@host/x":    `status: --source "full:...": it cannot be told where its password ends; write %40 for an @`,
		"status --source FILE:":                      `status: --source "FILE:": write file:///absolute/path or file:relative/path`,
		"status --source file://ada:top@elsewhere/x": `status: --source "file://ada@elsewhere/x": write file:///absolute/path`,
	} {
		got := p.run(strings.Fields(args)...)
		require.Equal(t, 125, got.code, args)
		require.Contains(t, got.stderr, want)
		require.Empty(t, got.stdout)
	}
	p.requireUntouched()
}

// The nearer one wins: the command line over the environment.
func TestDirectoryOnTheCommandLineWins(t *testing.T) {
	p := newProgram(t)
	p.vars[place.EnvSource] = p.url("full")
	require.Contains(t, p.must("status", "-d", p.base), "nothing is held in "+p.base+"/.locks\n")
	require.Empty(t, p.opened)
	require.Contains(t, p.must("status", "--source", "FILE:"+p.base), "nothing is held in "+p.base+"/.locks\n")
	require.Empty(t, p.opened)
}
