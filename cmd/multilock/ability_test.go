//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// A command that cannot work with a source reports that before it does anything.
func TestCommandsThatNeedMore(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte("true\n"), 0o600))
	for args, lacks := range map[string]string{
		"batch " + list:                        "batch: this source keeps no results of jobs",
		"batch --dry-run " + list:              "batch: this source keeps no results of jobs",
		"run -n x --once -- true":              "run: --once: this source keeps no results of jobs",
		"run -n x --every 1m -- true":          "run: --every: this source keeps no results of jobs",
		"run --fail-after 2 -- true":           "run: --fail-after: this source keeps no history",
		"run --fair --wait 9 -- true":          "run: --fair: this source has no queue",
		"acquire --detach --ttl 9 --fair -w 9": "acquire: --fair: this source has no queue",
		"wait":                                 "wait: this source cannot list whether anything in it is held",
		"wait --members a":                     "wait: this source keeps no results of jobs",
		"wait --expect 1":                      "wait: this source keeps no results of jobs",
		"history":                              "history: this source keeps no history",
		"status --results":                     "status: --results: this source keeps no results of jobs",
		"clean --results":                      "clean: --results: this source keeps no results of jobs",
		"clean --results --dry-run some other": "clean: --results: this source keeps no results of jobs",
	} {
		t.Run(args, func(t *testing.T) {
			p := newProgram(t)
			got := p.run(append([]string{"--source", p.url("bare")}, strings.Fields(args)...)...)
			require.Equal(t, ran{125, "", "multilock: " + lacks + ", and that is needed here; see what it can do: multilock --source " + p.url("bare") + " doctor\n"}, got)
			p.requireUntouched()
		})
	}
}

// A source's declaration counts, with its reason, even if it has the methods.
func TestGuaranteesThatAreNotKept(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte("true\n"), 0o600))
	for args, c := range map[string]struct {
		trait source.Trait
		lacks string
	}{
		"break":                      {source.TraitBreakByForce, "break: this source cannot break a lock"},
		"clean":                      {source.TraitBreakByEvidence, "clean: this source does not report whether a holder is dead"},
		"batch --fence " + list:      {source.TraitFenceNumbers, "batch: --fence: this source has no fencing numbers"},
		"batch " + list:              {source.TraitManifest, "batch: this source keeps no list of jobs about which hosts could agree"},
		"run -n x --once -- true":    {source.TraitResults, "run: --once: this source keeps no results of jobs"},
		"run -n x --every 9 -- true": {source.TraitOneClock, "run: --every: this source has no clock that all hosts read"},
		"wait --allow-empty":         {source.TraitCheapBarrier, "wait: this source cannot list whether anything in it is held"},
		"run --fair -w 9 true":       {source.TraitQueue, "run: --fair: this source has no queue"},
		"history":                    {source.TraitHistory, "history: this source keeps no history"},
	} {
		t.Run(args, func(t *testing.T) {
			p := newProgram(t)
			p.guarantees = []source.Guarantee{{Trait: c.trait, Why: "it is a test"}}
			command := append([]string{"--source", p.url("full"), "-g", "G"}, strings.Fields(args)...)
			got := p.run(command...)
			require.Equal(t, ran{125, "", "multilock: " + c.lacks + " (it is a test), and that is needed here; see what it can do: multilock --source " +
				p.url("full") + " -g G doctor\n"}, got)
			p.requireUntouched()

			if c.trait == source.TraitResults {
				require.Contains(t, p.must("--source", p.url("full"), "status", "--json", "x"), `"results": null`)
			}
			if c.trait == source.TraitHistory {
				p.must("--source", p.url("full"), "run", "--", "true")
				require.NoDirExists(t, filepath.Join(p.base, ".multilock", "groups", ".locks", "history"), "nothing is written into it")
			}
			p.guarantees[0].Kept = true
			if args != "break" {
				require.Zero(t, p.run(command...).code, "kept, it works")
			}
		})
	}
}

// Optional features are left out silently.
func TestCommandsThatDegrade(t *testing.T) {
	p := newProgram(t)
	p.vars[place.EnvSource] = p.url("bare")
	p.vars[place.EnvGroup], p.vars[place.EnvLegacyPeers] = "meant-for-others", "1"
	require.Equal(t, ran{0, "", ""}, p.run("run", "--", "sh", "-c", `test -z "$MULTILOCK_FENCE$MULTILOCK_GROUP" && test -n "$MULTILOCK_TOKEN"`))
	require.Equal(t, ran{0, "nothing is held in " + p.url("bare") + "\n", ""}, p.run("status"))
	require.JSONEq(t, `{"schema": 1, "base": "`+p.url("bare")+`", "group": "", "locks": [], "queues": [], "results": null}`, p.must("status", "--json"))
	require.Equal(t, "nothing to clean\n", p.must("clean"))
	require.Equal(t, "nothing to clean\n", p.must("clean", "--dry-run"))

	token := strings.TrimSpace(p.must("acquire", "--detach", "--ttl", "1h", "-n", "x"))
	require.Contains(t, p.run("status", "x").stdout, "held")
	got := p.run("run", "-n", "x", "--", "true")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, "clear it with: multilock --source "+p.url("bare")+" break x --token "+token+" --force")
	require.Equal(t, 122, p.run("release", "-n", "x", "--token", "another").code)
	require.Empty(t, p.must("release", "-n", "x", "--token", token))
	p.must("acquire", "--detach", "--ttl", "1h", "-n", "x")
	require.Contains(t, p.must("break", "x", "--force", "--now"), `broke lock "x"`)
	p.must("acquire", "--detach", "--ttl", "100ms", "-n", "y")
	require.Eventually(t, func() bool { return strings.Contains(p.must("clean"), "broke lock y") }, watchdog, poll)
}

// The keeper opens the same source as acquire.
func TestKeeperOfAnotherSource(t *testing.T) {
	p := newProgram(t)
	p.vars[place.EnvSource] = "bare://ada:secret@host:8029" + p.base
	owner := exec.Command("cat")
	life, err := owner.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	identity, err := process.Find(owner.Process.Pid)
	require.NoError(t, err)
	owned, err := json.Marshal(identity)
	require.NoError(t, err)
	order := fmt.Appendf(nil, `{"Place": {"URL": %q, "Name": "x", "User": "ada"}, "Owner": %s}`, p.vars[place.EnvSource], owned)
	in, out, err := os.Pipe()
	require.NoError(t, err)
	_, err = out.Write(append(order, "\ndelivered\n"...))
	require.NoError(t, err)
	require.NoError(t, life.Close())
	require.NoError(t, owner.Wait())
	p.stdin = in
	var answer struct{ Token string }
	line, err := bufio.NewReader(strings.NewReader(p.must("__keep"))).ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, out.Close())
	require.NoError(t, json.Unmarshal(line, &answer))
	require.NotEmpty(t, answer.Token)
	require.Equal(t, p.vars[place.EnvSource], p.opened)
	require.Contains(t, p.must("status", "x"), "free", "it was given back when its owner had ended")
}

// If the locks are not in a directory, the output of jobs is stored in the current directory.
func TestLogsOfABatch(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	p := newProgram(t)
	require.NoError(t, os.WriteFile("list", []byte("50%\techo loud\na\techo quiet; exit 3\n"), 0o600))
	got := p.run("--source", p.url("full"), "-g", "G", "batch", "list")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "its output: "+filepath.Join(here, "multilock-logs", "G", "a.log"))
	requireContent(t, "loud\n", "multilock-logs", "G", "50%25.log")

	require.Equal(t, 1, p.run("--source", p.url("full"), "-g", "H", "batch", "--logs", "there", "list").code)
	requireContent(t, "quiet\n", "there", "a.log")
	require.Equal(t, 1, p.run("-d", p.base, "-g", "I", "batch", "--logs", "those", "list").code)
	requireContent(t, "quiet\n", "those", "a.log")
	require.Equal(t, 1, p.run("-d", p.base, "-g", "J", "batch", "list").code)
	require.Equal(t, "quiet\n", p.must("-d", p.base, "-g", "J", "logs", "a"))
}

func requireContent(t *testing.T, want string, path ...string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	require.Equal(t, want, string(content))
}
