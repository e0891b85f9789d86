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

	"github.com/multilock/go/cmd/multilock/clitest"
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

// doctor examines a directory, and leaves nothing in it but what every use creates.
func TestDoctorOfADirectory(t *testing.T) {
	p := newProgram(t)
	code, report := p.doctor("-d", p.base)
	require.Equal(t, p.base, report.Base)
	require.Equal(t, ".locks", report.Group)
	require.NotEmpty(t, report.Host)
	require.Subset(t, subjects(report.Findings), []string{"ok mount", "ok rules", "ok clock", "ok trial", "ok run"})
	require.Equal(t, code == 1, len(report.Findings) > 5, "whether it warns depends on where the tests run")
	require.Len(t, report.Guarantees, len(source.Traits()))
	for _, guarantee := range report.Guarantees {
		require.NotNil(t, guarantee.Kept, guarantee.Trait)
		require.True(t, *guarantee.Kept, guarantee.Trait)
	}
	for dir, want := range map[string][]string{".": {".locks", ".multilock"}, ".locks": {}, ".multilock/staging": {}} {
		require.Equal(t, want, namesIn(t, filepath.Join(p.base, dir)))
	}
	text := p.run("doctor", "-d", p.base)
	require.Equal(t, code, text.code)
	require.Regexp(t, `^Locks work here, `, text.stdout)
	require.Regexp(t, `(?m)^Checks of `+regexp.QuoteMeta(p.base)+`/\.locks on `+regexp.QuoteMeta(report.Host)+`:$`, text.stdout)
	require.Regexp(t, `(?m)^ok       rules: a rename replaces `, text.stdout)
	require.NotContains(t, text.stdout, "fencing tokens")
	require.NotContains(t, p.run("doctor", "-q", "-d", p.base).stdout, "ok ")
	verbose := p.run("doctor", "-v", "-d", p.base).stdout
	require.Regexp(t, `(?m)^Guarantees of .*/\.locks:$`, verbose)
	require.Regexp(t, `(?m)^fencing tokens +yes  `, verbose)
	for line := range strings.Lines(strings.ReplaceAll(verbose, p.base, "/base")) {
		require.LessOrEqual(t, len(line), 81, line)
	}
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
func TestAssessmentOfTheDoctor(t *testing.T) {
	p := newProgram(t)
	p.vars[place.EnvSource] = p.url("full")
	alone := p.run("doctor")
	require.Zero(t, alone.code)
	require.True(t, strings.HasPrefix(alone.stdout, "Locks work here, as far as one host can test.\n"), alone.stdout)
	require.Contains(t, alone.stdout, "\n    multilock --source "+p.url("full")+" doctor --join --expect 2\n")
	require.Equal(t, ran{0, "", ""}, p.run("doctor", "-q"))
	p.findings = []source.Finding{{Subject: "weather", Severity: source.SeverityWarning, Text: "it rains", Advice: "stay in"}}
	got := p.run("doctor", "-q")
	require.Equal(t, ran{1, "Locks work here, with a warning: it rains\n\nWhat to do:\n- stay in\n", ""}, got)
	p.findings = append(p.findings, source.Warning("road", "it is wet", ""))
	require.Regexp(t, `(?s)^Locks work here, with 2 warnings\.\n\nChecks of .*:\nwarning  weather: it rains\nwarning  road: it is wet\n\nWhat to do:`, p.run("doctor", "-q").stdout)
	p.findings = append(p.findings, source.Finding{Subject: "house", Severity: source.SeverityUnusable, Text: "it burns"})
	code, report := p.doctor()
	require.Equal(t, 125, code)
	require.Equal(t, []string{"warning weather", "warning road", "critical house"}, subjects(report.Findings), "no lock was tried")
	got = p.run("doctor")
	require.Empty(t, got.stderr)
	require.True(t, strings.HasPrefix(got.stdout, "Locks do not work here: it burns\n"), got.stdout)
	require.NotContains(t, got.stdout, "house: it burns", "it is the assessment")
}

// A source that declares nothing about itself is tested.
func TestDoctorOfASilentSource(t *testing.T) {
	p := newProgram(t)
	code, report := p.doctor("--source", p.url("bare"))
	require.Zero(t, code)
	require.Equal(t, []string{"ok trial", "ok run"}, subjects(report.Findings))
	for _, guarantee := range report.Guarantees {
		require.Nil(t, guarantee.Kept)
	}
	require.Regexp(t, `(?m)^fencing tokens +\?    -$`, p.must("doctor", "-v", "--source", p.url("bare")))
}

func TestDoctorOfNoPlace(t *testing.T) {
	p := newProgram(t)
	code, report := p.doctor("-d", "/nonexistent/dir")
	require.Equal(t, 125, code)
	require.Equal(t, []string{"critical source"}, subjects(report.Findings))
	require.Empty(t, report.Guarantees)

	code, report = p.doctor("--source", "silent://host", "--timeout", "10ms")
	require.Equal(t, 125, code)
	require.Contains(t, report.Findings[0].Text, "no answer within the time of --wait")
	for _, args := range [][]string{{"doctor", "x"}, {"doctor", "--timeout", "0"}} {
		require.Equal(t, 125, p.run(args...).code)
	}
}

// If no other host joins, doctor reports what to compare, and does not report success.
func TestDoctorThatNobodyJoins(t *testing.T) {
	p := newProgram(t)
	code, report := p.doctor("-d", p.base, "--join", "--timeout", "1s")
	require.Equal(t, 125, code)
	last := report.Findings[len(report.Findings)-1]
	require.Equal(t, "join", last.Subject)
	require.Equal(t, "no other host joined within 1s", last.Text)
	require.Contains(t, last.Advice, "another server, export or inode is another directory")
	require.Equal(t, "mount", report.Findings[0].Subject)
	require.Regexp(t, ` at .*, from .*, inode [1-9]\d*$`, report.Findings[0].Text)
	require.Equal(t, &jointest.Report{Expect: 2, Account: jointest.Account{Fences: []uint64{}, Clock: report.Join.Clock}, Hosts: []jointest.Host{}}, report.Join)
	require.NotNil(t, report.Join.Clock)
	got := p.run("doctor", "-q", "-d", p.base, "--join", "--timeout", "1s")
	require.Equal(t, 125, got.code)
	require.True(t, strings.HasPrefix(got.stdout, "Locks were not tested between hosts: no other host joined within 1s\n"), got.stdout)
	for _, args := range [][]string{{"--expect", "2"}, {"--join", "--expect", "1"}, {"--join", "--expect", "x"}, {"--join", "--timeout", "0"}} {
		require.Equal(t, 125, p.run(append([]string{"doctor", "-d", p.base}, args...)...).code, args)
	}
}

// Missing guarantees of a source are named.
func TestDoctorWhereNobodyCanJoin(t *testing.T) {
	p := newProgram(t)
	code, report := p.doctor("--join", "--source", "cook+file://"+p.base+"?period=1h")
	require.Equal(t, 125, code)
	require.Contains(t, report.Findings[len(report.Findings)-1].Text, "doctor: --join: this source frees no lock before its time is over")
	require.Contains(t, p.run("doctor", "--join", "--source", "cook+file://"+p.base+"?period=1h").stdout, "Locks were not tested between hosts: doctor: --join: ")
	p.guarantees = []source.Guarantee{{Trait: source.TraitBreakByEvidence, Why: "it has no owners"}}
	code, report = p.doctor("--join", "--source", p.url("full"))
	require.Equal(t, 125, code)
	require.Contains(t, report.Findings[len(report.Findings)-1].Text, "does not report whether a holder is dead (it has no owners)")
	require.Nil(t, report.Join)
}

// All users can see a secret on a command line with ps. It belongs in the environment.
func TestSecretsOnTheCommandLine(t *testing.T) {
	for _, form := range []string{"full://ada:top@host:8029%s", "full://ada@host:8029%s?token=top"} {
		p := newProgram(t)
		url := strings.Replace(form, "%s", p.base, 1)
		got := p.run("status", "--source", url)
		require.Equal(t, ran{125, "", "multilock: status: --source " + p.url("full") +
			": it contains a secret, which all users of this host can read with ps; leave it out there, and put it into the variable MULTILOCK_PASSWORD, " +
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

// The rule is that of psql and libpq for files with secrets.
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

// A library may include the given URL in its errors.
func TestErrorsOfLibrariesHaveNoSecrets(t *testing.T) {
	p := newProgram(t)
	for _, password := range []string{"top", "t%6Fp"} {
		p.vars[place.EnvSource] = "broken://ada:" + password + "@host"
		for _, command := range []string{"status", "doctor", "doctor --json"} {
			got := p.run(strings.Fields(command)...)
			require.Equal(t, 125, got.code)
			require.Contains(t, clitest.OneLine(got.stdout+got.stderr), "dial broken://ada:...@host: no such host")
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
		"status --source full://ada:1/top@host/x":    `status: --source "full:...": the end of its password is ambiguous; write %40 for an @`,
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

// The command line takes precedence over the environment.
func TestDirectoryOnTheCommandLineWins(t *testing.T) {
	p := newProgram(t)
	p.vars[place.EnvSource] = p.url("full")
	require.Contains(t, p.must("status", "-d", p.base), "nothing is held in "+p.base+"/.locks\n")
	require.Empty(t, p.opened)
	require.Contains(t, p.must("status", "--source", "FILE:"+p.base), "nothing is held in "+p.base+"/.locks\n")
	require.Empty(t, p.opened)
}
