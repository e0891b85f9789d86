package guides_test

import (
	"strings"
	"testing"
)

func readme() []scene {
	held := `multilock -d /shared run -q -n NAME -- sh -c 'kill -9 $PPID' || true; `
	return []scene{
		{has: "go run ./cmd/multilock", play: func(t *testing.T, b block) {
			commands{
				skip: map[string]string{"scripts/test": "it is what runs this test", "scripts/build": "scripts/check builds with it", "go install": "it needs a release that is published"},
				says: map[string]string{"go run": "only one of us says this\n$"},
			}.play(t, block{b.doc, b.line, "cd " + checkout(t) + "\n" + b.text})
		}},
		{has: "0 2 * * *", play: crontab{
			now: "01:59:57", calls: map[string]int{"nightly.sh": 1, "sync.sh": 1},
		}.play},
		{has: "-n page7 --once", play: commands{
			here:   []string{"convert", "render"},
			before: `printf 'one\techo 1\ntwo\techo 2\n' >jobs.txt; touch a.gif 'b c.gif'`,
			calls:  []string{"convert page7", "convert a.gif a.gif.png", "convert b c.gif b c.gif.png", "render scene7"},
			after:  "multilock -d /shared -g convert wait --expect 2",
		}.play},
		{has: "--shared -n db.shared", play: commands{
			here: []string{"report", "load"}, calls: []string{"report", "load"},
		}.play},
		{has: "ssh host$i", play: commands{
			hosts: true, calls: []string{"work 1", "work 2", "work 3", "next-step"},
		}.play},
		{has: "--fair", play: commands{here: []string{"train"}, calls: []string{"train"}}.play},
		{has: "acquire -n deploy", play: commands{after: "multilock -d /shared status deploy"}.play},
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
					// 1: it warns of the file system, which is no NFS here.
					p.must("{ for i in 1 2 3; do ssh -n host$i '" + command + "' & pids=\"$pids $!\"; done; for p in $pids; do wait $p; test $? -le 1 || exit; done; } >out; test $(grep -c 'join: 3 participants' out) = 3")
				}
			}
		}},
		{has: "fslock.Open", play: goProgram("go run")},
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
		{has: "jug execute", play: right(commands{before: `printf 'job 1\n' >tasks.txt`, calls: []string{"job 1", "task 7"}})},
		{has: "@every", play: func(t *testing.T, b block) {
			crontab{now: "01:59:57", also: "MULTILOCK_DIR=/shared\nPATH=/usr/local/bin:/usr/bin:/bin\n", calls: map[string]int{"job": 1}}.
				play(t, block{b.doc, b.line, b.text[41:]})
		}},
	}
}

func goGuide() []scene {
	return []scene{
		{has: "fslock.Open", play: goProgram("go run")},
		{has: "AcquireShared", play: goProgram("go vet")},
		{has: "lockgroup.Once", play: goProgram("go vet")},
		{has: "batch.Run", play: goProgram("go vet")},
	}
}
