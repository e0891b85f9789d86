package guides_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// convert sets up /shared/convert with the guide's list and the programs of its jobs.
const convert = `mkdir /shared/convert; cp /usr/local/bin/convert /shared/convert/render; cp /usr/local/bin/convert /shared/convert/fetch
printf 'part01\tset -e; ./fetch 1; ./render 1\npart02\tset -e; ./fetch 2; ./render 2\n' >/shared/convert/jobs.txt; `

func parts() []string { return []string{"fetch 1", "render 1", "fetch 2", "render 2"} }

func cluster() []scene {
	return []scene{
		{has: "/shared/convert/jobs.txt  ", play: func(t *testing.T, b block) {
			p := newPlace(t)
			p.must(convert)
			_, list, _ := strings.Cut(b.text, "\n\n")
			p.write("/shared/convert/jobs.txt", list)
			p.must("cd /shared/convert && multilock -d /shared/convert -g convert batch jobs.txt")
			require.ElementsMatch(t, parts(), p.calls())
		}},
		{has: "BARRIER", play: func(t *testing.T, b block) {
			p := newPlace(t, "fetch", "render", "join")
			p.write(p.work+"/jobs.txt", b.text)
			p.must("multilock -d /shared -g steps batch -j 4 jobs.txt")
			calls := p.calls()
			require.Len(t, calls, 4)
			require.Equal(t, []string{"fetch all", "join"}, []string{calls[0], calls[3]}, "each step runs after the previous one")
		}},
		{has: "--replace --dry-run", play: commands{
			before: `printf 'one\ttrue\ntwo\tfalse\n' >jobs.txt; ! multilock -d /shared -g convert batch -q jobs.txt; printf 'one\ttrue\ntwo\ttrue\n' >jobs.txt`,
			says:   map[string]string{"--dry-run": "two +would run, changed", "--replace jobs.txt": "2 jobs: 2 done, 1 ended earlier"},
		}.play},
		{has: "doctor --join", play: commands{hosts: true, before: convert, says: map[string]string{"doctor": "join: 3 participants"}}.play},
		{has: "# convert.sh", play: func(t *testing.T, b block) {
			hosts(t)
			p := newPlace(t)
			p.must(convert)
			p.program("/shared/convert/convert.sh", b.text)
			p.must("cd /shared/convert && ./convert.sh && ./convert.sh")
			require.ElementsMatch(t, parts(), p.calls())
		}},
		{has: "pkill", play: func(t *testing.T, b block) {
			hosts(t)
			p := newPlace(t)
			p.must("mkdir /shared/convert; for i in 1 2 3 4 5 6; do echo 'echo >>begun; while ! test -e go; do sleep 0.1; done'; done >/shared/convert/jobs.txt")
			p.must(`for i in 1 2 3; do
				ssh -n node$i "cd /shared/convert && exec multilock -d /shared/convert -g convert batch -q -j 1 jobs.txt >/dev/null 2>&1" >/dev/null 2>&1 & done;
				while test $(cat /shared/convert/begun 2>/dev/null | wc -l) != 3; do sleep 0.1; done`)
			for _, s := range p.follow(b.text) {
				require.Contains(t, []int{0, 1}, s.code, s.said) // 1: this host runs another batch
			}
			p.must("sleep 1; touch /shared/convert/go")
			p.eventually("! pgrep -f '[m]ultilock .*-g convert batch'")
			require.Equal(t, "3\n", p.must("wc -l </shared/convert/begun"), "no more jobs were taken")
		}},
		{has: "#SBATCH --job-name", play: notCommands("the next block runs it")},
		{has: "sbatch convert.sbatch", play: slurmArray},
		{has: "sbatch next-step.sbatch", play: slurmNext},
		{has: "-o convert.html", play: commands{
			before: convert + "cd /shared/convert; printf '#!/bin/sh\\necho $0 $*; test $1 = 1\\n' >render; ! multilock -d /shared/convert -g convert batch -q jobs.txt",
			says:   map[string]string{"logs part02": "render 2", "logs --failed": "render 2", "--joblog": "Exitval", "status": "part01"},
			after:  "test -s convert.html",
		}.play},
	}
}

func pipeline() []scene {
	return []scene{
		{has: "# pipeline.sh", play: func(t *testing.T, b block) {
			hosts(t)
			p := newPlace(t)
			p.must("mkdir /shared/here; cd /shared/here; for i in fetch convert report; do cp /usr/local/bin/convert $i; done")
			p.program("/shared/here/pipeline.sh", b.text)
			p.must("for i in 1 2; do ssh -n host$i 'cd /shared/here && ./pipeline.sh' & pids=\"$pids $!\"; done; for p in $pids; do wait $p || exit; done")
			want := []string{"report"}
			for _, part := range []string{"1", "2", "3", "4", "5", "6"} {
				want = append(want, "fetch "+part, "convert "+part)
			}
			require.ElementsMatch(t, want, p.calls())
			p.must("cd /shared/here && ./pipeline.sh")
			require.Empty(t, p.calls(), "completed parts do not run again")
		}},
		{has: "clean --results", play: commands{before: "mkdir /shared/run42; for i in 1 3; do multilock -d /shared/run42 -g convert run -q -n part$i --once -- true; done"}.play},
		{has: "-g stage2", play: func(t *testing.T, b block) {
			commands{here: []string{"work", "next-step"}, calls: []string{"work 1", "work 2", "work 3", "next-step"}}.
				play(t, block{b.doc, b.line, "export MULTILOCK_DIR=/shared\n" + b.text})
		}},
	}
}
