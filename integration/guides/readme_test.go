package guides_test

import (
	"strings"
	"testing"
)

func readme() []scene {
	held := `multilock -d /shared run -q -n NAME -- sh -c 'kill -9 $PPID' || true; `
	return []scene{
		{has: "scripts/test", play: notCommands("scripts/check builds with scripts/build, and scripts/test is what runs this test")},
		{has: "one host prints this", play: transcript},
		{has: "echo {/.}", play: transcript},
		{has: "0 2 * * *", play: crontab{
			now: "01:59:57", calls: map[string]int{"nightly.sh": 1, "sync.sh": 1},
		}.play},
		{has: "-n page7 --once", play: commands{
			here: []string{"convert", "render"}, calls: []string{"convert page7", "render scene7", "next-step"},
		}.play},
		{has: "break NAME", play: func(t *testing.T, b block) {
			commands{
				before: held + "multilock -d /shared run -q -n nightly --every 1d -- true",
				says:   map[string]string{"status": "NAME", "overdue": "^OVERDUE OK", "metrics": "multilock_", "history": "acquired"},
				after:  "test -s page.html",
				skip:   map[string]string{"--join": "it is run on three hosts, below"},
			}.play(t, b)
			for line := range strings.Lines(b.text) {
				if command, _, found := strings.Cut(line, "#"); found && strings.Contains(line, "--join") {
					hosts(t)
					p := newPlace(t)
					// 1: doctor warns about the file system, which is not NFS here.
					p.must("{ for i in 1 2 3; do ssh -n host$i '" + command + "' & pids=\"$pids $!\"; done; for p in $pids; do wait $p; test $? -le 1 || exit; done; } >out; test $(grep -c 'join: 3 participants' out) = 3")
				}
			}
		}},
		{has: "fslock.Open", play: goProgram},
	}
}

func comingFrom() []scene {
	right := func(c commands) func(*testing.T, block) {
		return func(t *testing.T, b block) {
			var typed strings.Builder
			c.each = true
			for line := range strings.Lines(b.text) {
				if len(line) > 41 {
					typed.WriteString("export MULTILOCK_DIR=/shared; " + line[41:])
				} else {
					t.Fatalf("no right side: %s", line)
				}
			}
			c.play(t, block{b.doc, b.line, typed.String()})
		}
	}
	return []scene{
		{has: "flock -n", play: right(commands{calls: []string{"job", "job", "job", "job", "job", "job"}})},
		{has: "parallel -j 8", play: right(commands{before: `printf 'job 1\njob 2\n' >jobs.txt`, calls: []string{"job 1", "job 2", "job"}})},
		{has: "1.gif", play: right(commands{
			before: `echo 5 >five.txt; printf '0,7\n' >n.csv; mkdir in; touch in/6`,
			calls:  []string{"job 1", "job 2", "job 3", "job 4", "job 5", "job 6", "job 7", "job 8"},
		})},
		{has: "jug execute", play: right(commands{before: `printf 'job 1\n' >tasks.txt`, calls: []string{"job 1", "task 7"}})},
		{has: "@every", play: func(t *testing.T, b block) {
			crontab{now: "01:59:57", also: "MULTILOCK_DIR=/shared\nPATH=/usr/local/bin:/usr/bin:/bin\n", calls: map[string]int{"job": 1}}.
				play(t, block{b.doc, b.line, b.text[41:]})
		}},
	}
}

func goGuide() []scene {
	return []scene{
		{has: "fslock.Open", play: goProgram},
	}
}
