//go:build unix

package main_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// aSecret must not be in any record.
const aSecret = "t0p-s3cr3t"

// filesWith returns the files below the base directory that contain a text.
func (s *station) filesWith(text string) []string {
	s.t.Helper()
	var found []string
	require.NoError(s.t, filepath.WalkDir(s.base, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// waitingFor returns a job that waits for the end of its input and then fails, with a secret in its command
// line.
func waitingFor(secret string) []string {
	return []string{"--", "sh", "-c", "echo ready; cat >/dev/null; exit 3", "sh", "--password", secret, "PGPASSWORD=" + secret, "https://ada:" + secret + "@host/"}
}

// Neither readers of the base directory nor recipients of the report learn a secret of a command line.
func TestSecretsOfACommandAreNotRecorded(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	r := s.start(append([]string{"run", "--once", "-n", "x"}, waitingFor(aSecret)...)...)
	r.Expect("ready")
	const shown = "sh --password ... PGPASSWORD=... https://ada:...@host/"
	require.Empty(t, s.filesWith(aSecret), "in the lock")
	require.Contains(t, s.lock("x").Command, shown)
	refused := s.run("run", "-n", "x", "--fail-after", "9", "--", "true", "--token="+aSecret)
	require.Contains(t, refused.stderr, shown)
	require.Equal(t, 3, r.end().code, "the command itself has its secret")
	require.Empty(t, s.filesWith(aSecret))
	require.Contains(t, s.must("status", "--results", "--json"), shown)
	page := filepath.Join(t.TempDir(), "page.html")
	s.must("report", "-o", page)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.NotContains(t, string(text), aSecret)
	for _, e := range s.history() {
		require.Contains(t, e.Command, "...")
	}
}

func TestSecretsAreShownWhereThatIsWanted(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "--redact=false", "--", "true", "--password", aSecret)
	require.Equal(t, "true --password "+aSecret, s.history()[0].Command)
	off := s.command("run", "-n", "y", "--", "true", "--password", aSecret)
	off.Env = append(off.Env, "MULTILOCK_REDACT=0")
	require.Zero(t, s.finish(off).code)
	require.Equal(t, "true --password "+aSecret, s.history("y")[0].Command)
	on := s.command("run", "-n", "z", "--redact", "--", "true", "--password", aSecret)
	on.Env = append(on.Env, "MULTILOCK_REDACT=0")
	require.Zero(t, s.finish(on).code)
	require.Equal(t, "true --password ...", s.history("z")[0].Command, "the option wins")
	strange := s.command("run", "--", "true")
	strange.Env = append(strange.Env, "MULTILOCK_REDACT=maybe")
	require.Equal(t, ended{125, "", "multilock: run: MULTILOCK_REDACT=\"maybe\": write 1 or 0\n"}, s.finish(strange))
}

func TestALabelIsShownInPlaceOfTheCommand(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	r := s.start(append([]string{"run", "--once", "-n", "x", "--label", "the nightly one"}, waitingFor("word")...)...)
	r.Expect("ready")
	require.Equal(t, "the nightly one", s.lock("x").Command)
	require.Equal(t, 3, r.end().code)
	require.Empty(t, s.filesWith("cat >/dev/null"))
	require.Contains(t, s.must("status", "--results", "--json"), `"command": "the nightly one"`)
	require.Equal(t, 125, s.run("run", "--label", "", "--", "true").code, "a variable that was never set")
}

// Only the list of jobs has the secrets, because a host needs them to run the jobs; records do not.
func TestSecretsOfABatchAreInItsListAlone(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	joblog := filepath.Join(t.TempDir(), "joblog")
	list := s.list("a\tPASSWORD="+aSecret+" sh -c 'test ${#PASSWORD} = 10; exit 4'", "b\ttrue --token "+aSecret)
	require.Contains(t, s.must("batch", "--dry-run", list), "true --token ...")
	v, _ := s.batch("--joblog", joblog, list)
	require.Equal(t, []int{2, 1, 1}, []int{v.Total, v.Done, v.Failed})
	require.Equal(t, []string{filepath.Join(s.base, ".multilock", "groups", ".locks", "manifest", "list")}, s.filesWith(aSecret))
	text, err := os.ReadFile(joblog)
	require.NoError(t, err)
	require.Contains(t, string(text), "true --token ...\n")
	require.NotContains(t, string(text), aSecret)
	require.Len(t, s.filesWith("PASSWORD=... sh -c"), 2, "the history and the result")

	other := s.run("batch", s.list("a\tPASSWORD=an0th3r"+aSecret+" sh -c 'exit 4'", "b\ttrue --token "+aSecret))
	require.Equal(t, 125, other.code)
	require.NotContains(t, other.stderr, aSecret, "a mail of cron")

	s.must("batch", "-g", "G", "--label", "convert", "--joblog", joblog, s.list("a\ttrue a w0rd", "b\ttrue b w0rd"))
	require.Len(t, s.filesWith("w0rd"), 1)
	require.Equal(t, "convert", s.history("-g", "G")[0].Command)

	// Commands that show jobs take their command lines from the list.
	for _, args := range [][]string{{"status", "-r"}, {"report", "--json"}, {"report", "-o", "-"}, {"logs", "--joblog"}} {
		text := s.must(args...)
		require.Contains(t, text, "true --token ...", args)
		require.NotContains(t, text, aSecret, args)
		text = s.must(append(args, "-g", "G")...)
		require.Contains(t, text, "convert", args)
		require.NotContains(t, text, "w0rd", args)
	}
}

// The history is shortened on request, and automatically.
func TestCleanHistory(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "--", "true")
	old := filepath.Join(s.base, ".multilock", "groups", ".locks", "history", "2020-01-01.h.b.jsonl")
	require.NoError(t, os.WriteFile(old, []byte(`{"time":"2020-01-01T00:00:00Z","event":"broke","name":"old","by":{}}`+"\n"), 0o600))
	require.Len(t, s.history("old"), 1)
	require.Equal(t, "would remove history 2020-01-01.h.b.jsonl\n", s.must("clean", "--history", "--dry-run"))
	require.Equal(t, "no history to remove\n", s.must("clean", "--history", "--keep", "20000d"))
	require.FileExists(t, old)
	require.JSONEq(t, `{"schema":1,"dry_run":false,"deleted_files":["2020-01-01.h.b.jsonl"]}`, s.must("clean", "--history", "--json"))
	require.Empty(t, s.history("old"))
	require.NotEmpty(t, s.history())
	require.Equal(t, "no history to remove\n", s.must("clean", "--history", "--keep", "0"), "today is not over")
	require.Equal(t, 125, s.run("clean", "--keep", "1d").code)
	forever := s.command("clean", "--history")
	forever.Env = append(forever.Env, "MULTILOCK_HISTORY_KEEP=0")
	require.Contains(t, s.finish(forever).stderr, "keeps it forever; use --keep to set how much to keep")
	strange := s.command("run", "--", "true")
	strange.Env = append(strange.Env, "MULTILOCK_HISTORY_KEEP=long")
	require.Contains(t, s.finish(strange).stderr, `MULTILOCK_HISTORY_KEEP="long": `)
}
