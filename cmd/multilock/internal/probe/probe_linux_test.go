package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// cluster has the output of Slurm's commands, as scripts.
type cluster struct{ squeue, hostnames, sinfo string }

var healthy = cluster{"echo 4711 CANCELLED 'n[1-3]'", "printf 'n1\\nn2\\nn3\\n'", "printf 'n2 idle\\nn2 mixed\\n'"}

// prober asks a cluster whose commands log their calls.
func (c cluster) prober(t *testing.T, said *[]string) *Prober {
	t.Helper()
	dir := t.TempDir()
	for name, script := range map[string]string{"squeue": c.squeue, "scontrol": c.hostnames, "sinfo": c.sinfo} {
		if script != "" {
			text := "#!/bin/sh\necho " + name + " \"$@\" >> " + dir + "/calls\n" + script + "\n"
			syscall.ForkLock.RLock()                                           // a concurrent fork would keep it open (ETXTBSY)
			err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700) //nolint:gosec // it is to be run
			syscall.ForkLock.RUnlock()
			require.NoError(t, err)
		}
	}
	return New(Slurm, []string{"PATH=" + dir + ":/usr/bin:/bin", "SLURM_CLUSTER_NAME=c"}, process.Identity{}, func(format string, args ...any) {
		*said = append(*said, fmt.Sprintf(format, args...))
	})
}

func held(b source.BatchJob) source.Record {
	return source.Record{Name: "x", Token: "t", Claim: source.Claim{Holder: source.Holder{Batch: b, User: "$(touch /tmp/x)", Command: "`id`"}}}
}

var job4711 = source.BatchJob{System: "slurm", ID: "4711", Cluster: "c", Node: "n2"}

func TestSlurmSaysYes(t *testing.T) {
	t.Parallel()
	var said []string
	got := healthy.prober(t, &said).Ask(t.Context(), held(job4711))
	require.Equal(t, process.Evidence{Life: process.Gone, Why: "its Slurm job 4711 is over (CANCELLED)"}, got)
	require.Empty(t, said)
}

// A holder has ended only if each answer says so.
func TestSlurmSaysAnythingElse(t *testing.T) {
	t.Parallel()
	of := func(change func(*source.BatchJob)) source.BatchJob {
		b := job4711
		change(&b)
		return b
	}
	with := func(change func(*cluster)) cluster {
		c := healthy
		change(&c)
		return c
	}
	cases := map[string]struct {
		cluster
		job  source.BatchJob
		want string // the reported reason; nothing if the answer was clear
	}{
		"running":                    {with(func(c *cluster) { c.squeue = "echo 4711 RUNNING n2" }), job4711, ""},
		"completing":                 {with(func(c *cluster) { c.squeue = "echo 4711 COMPLETING n2" }), job4711, ""},
		"its node failed":            {with(func(c *cluster) { c.squeue = "echo 4711 NODE_FAIL n2" }), job4711, ""},
		"requeued":                   {with(func(c *cluster) { c.squeue = "echo 4711 PENDING" }), job4711, ""},
		"a state of later":           {with(func(c *cluster) { c.squeue = "echo 4711 EVAPORATED n2" }), job4711, ""},
		"unknown":                    {with(func(c *cluster) { c.squeue = "echo slurm_load_jobs error: Invalid job id >&2; exit 1" }), job4711, "squeue ended with code 1: slurm_load_jobs error: Invalid job id"},
		"an answer, and failed":      {with(func(c *cluster) { c.squeue += "; exit 1" }), job4711, "squeue ended with code 1"},
		"no answer":                  {with(func(c *cluster) { c.squeue = ":" }), job4711, "squeue lists 0 jobs"},
		"another's":                  {with(func(c *cluster) { c.squeue = "echo 4712 CANCELLED n2" }), job4711, "squeue lists 0 jobs"},
		"twice":                      {with(func(c *cluster) { c.squeue += "; " + c.squeue }), job4711, "squeue lists 2 jobs"},
		"no squeue":                  {with(func(c *cluster) { c.squeue = "" }), job4711, "squeue: command not found"},
		"other nodes":                {with(func(c *cluster) { c.hostnames = "echo n1; echo n22" }), job4711, "it is another job"},
		"no nodes":                   {with(func(c *cluster) { c.squeue = "echo 4711 CANCELLED" }), job4711, "has no nodes in squeue"},
		"a node that is an option":   {with(func(c *cluster) { c.squeue = "echo 4711 CANCELLED -x" }), job4711, "has no nodes in squeue"},
		"no scontrol":                {with(func(c *cluster) { c.hostnames = "exit 3" }), job4711, "scontrol ended with code 3"},
		"node down":                  {with(func(c *cluster) { c.sinfo = "echo n2 down" }), job4711, "node n2 is down"},
		"node silent":                {with(func(c *cluster) { c.sinfo = "echo n2 idle; echo 'n2 idle*'" }), job4711, "node n2 is idle*"},
		"node drained":               {with(func(c *cluster) { c.sinfo = "echo n2 drained" }), job4711, "node n2 is drained"},
		"no node":                    {with(func(c *cluster) { c.sinfo = ":" }), job4711, "sinfo does not list"},
		"sinfo failed":               {with(func(c *cluster) { c.sinfo += "; exit 1" }), job4711, "sinfo ended with code 1"},
		"no batch job":               {healthy, source.BatchJob{}, "names no job of a batch system"},
		"of another system":          {healthy, of(func(b *source.BatchJob) { b.System = "pbs" }), "its batch system is pbs"},
		"of another cluster":         {healthy, of(func(b *source.BatchJob) { b.Cluster = "d" }), "of the cluster d, and this one is c"},
		"not from a node":            {healthy, of(func(b *source.BatchJob) { b.Node = "" }), "was not started by a node of Slurm"},
		"a number that is an option": {healthy, of(func(b *source.BatchJob) { b.ID = "--start" }), "was not started by a node of Slurm"},
		"a node that is none":        {healthy, of(func(b *source.BatchJob) { b.Node = "-n" }), "was not started by a node of Slurm"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said []string
			got := c.prober(t, &said).Ask(t.Context(), held(c.job))
			require.NotEqual(t, process.Gone, got.Life)
			if c.want == "" {
				require.Empty(t, said)
				return
			}
			require.Len(t, said, 1)
			require.Contains(t, said[0], `--probe is inconclusive about the holder of "x": `)
			require.Contains(t, said[0], c.want)
		})
	}
}

// A command answers with one word, and text of the record is not executed.
func TestCommand(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		text string
		gone bool
		want string
	}{
		"yes":           {"echo gone", true, ""},
		"no":            {"echo alive", false, ""},
		"nothing":       {"true", false, `printed ""`},
		"more":          {"echo gone; echo maybe", false, `printed "gone\nmaybe"`},
		"yes, but":      {"echo gone; exit 1", false, "ended with code 1"},
		"killed":        {"echo gone; kill -9 $$", false, "ended with code 137"},
		"no end":        {"sleep 1000 & echo gone", false, "its output was not closed"},
		"too much":      {"yes gone | head -c 2000000", false, "ended with code"},
		"what it finds": {`[ "$MULTILOCK_NAME/$MULTILOCK_HOLDER_USER/$MULTILOCK_HOLDER_COMMAND/$MULTILOCK_BATCH_JOB" = 'x/$(touch /tmp/x)/` + "`id`" + `/4711' ] && echo gone`, true, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said []string
			p := New(c.text, []string{"PATH=/usr/bin:/bin"}, process.Identity{}, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
			got := p.Ask(t.Context(), held(job4711))
			require.Equal(t, c.gone, got.Life == process.Gone, said)
			require.Contains(t, strings.Join(said, ""), c.want)
		})
	}
}

// A command that takes too long is terminated, and proves nothing.
func TestCommandWithoutAnEnd(t *testing.T) {
	t.Parallel()
	late := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, late)
	defer cancel()
	_, err := command{runner{environ: []string{"PATH=/usr/bin:/bin"}}, "echo gone; exec sleep 1000"}.ask(ctx, held(job4711))
	require.ErrorIs(t, err, late)
}

// Each holder gets its own answer, and a yes is cached.
func TestAnswersAreRemembered(t *testing.T) {
	t.Parallel()
	calls := filepath.Join(t.TempDir(), "calls")
	p := New(`echo call >>"`+calls+`"; echo gone`, []string{"PATH=/usr/bin:/bin"}, process.Identity{}, t.Logf)
	next := held(job4711)
	next.Token = "another"
	for range 3 {
		require.Equal(t, process.Gone, p.Ask(t.Context(), held(job4711)).Life)
		require.Equal(t, process.Gone, p.Ask(t.Context(), next).Life)
	}
	asked, err := os.ReadFile(calls)
	require.NoError(t, err)
	require.Equal(t, "call\ncall\n", string(asked))
}

// Text of a record gets into a command line only if it is a safe argument.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"n1", "node-7.a_b", "N"} {
		require.True(t, isWord(good, maxNode, letters+digits+"._-"), good)
	}
	for _, bad := range []string{"", "-n", ".n", "n 1", "n;1", "n\n", "n$", "é", "n\x00", strings.Repeat("n", maxNode+1)} {
		require.False(t, isWord(bad, maxNode, letters+digits+"._-"), bad)
	}
}
