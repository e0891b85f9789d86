package guides_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// as runs a block as a user of the world, with that user's current groups.
func as(who, before string, c commands) func(*testing.T, block) {
	return func(t *testing.T, b block) {
		require.True(t, who == "root" || strings.HasPrefix(b.text, "# "+who), b.text)
		p := team(t, c.here...)
		if before != "" {
			p.must(before)
		}
		p.calls()
		for _, s := range p.statements(b.text) {
			p.write(p.work+"/line", s+"\n")
			got := p.sh("chmod 755 . line; setpriv --reuid " + who + " --regid " + who + " --init-groups sh ./line 2>&1")
			t.Logf("%s$ %s\n%s", who, s, got.out)
			code, _ := entry(c.codes, s)
			require.Equal(t, code, got.code, "%s\n%s", s, got.out)
			if pattern, found := entry(c.says, s); found {
				require.Regexp(t, pattern, got.out, s)
			}
		}
		if c.after != "" {
			p.must(c.after)
		}
		if c.calls != nil {
			require.Equal(t, c.calls, p.calls())
		}
	}
}

// team returns a place with the guide's users, and the directory that its first block creates.
func team(t *testing.T, here ...string) *place {
	t.Helper()
	p := newPlace(t, here...)
	p.must("for u in alice bob carol; do id $u >/dev/null 2>&1 || useradd -M $u || exit; done; chmod 755 " + p.work)
	for _, b := range allBlocks(t) {
		if strings.Contains(b.text, "groupadd jobs") {
			p.must("getent group jobs >/dev/null && groupdel jobs; " + b.text)
		}
	}
	p.program("/usr/local/bin/make-report", standIn)
	p.program("/usr/local/bin/tidy", standIn)
	p.must(`printf 'part01\techo one\n' >jobs.txt; chmod 644 jobs.txt`)
	return p
}

// by returns a command that a user runs in /shared/locks, with a umask that gives the group no access.
func by(who, command string) string {
	return "setpriv --reuid " + who + " --regid " + who + " --init-groups sh -c 'umask 077; multilock " + command + "'"
}

func users() []scene {
	const report = "-d /shared/locks run -q -n report --every 1d -- make-report"
	aliceDid := by("alice", report) + "; chmod 755 .; " + by("alice", "-d /shared/locks -g convert batch -q jobs.txt")
	return []scene{
		{has: "groupadd jobs", play: func(t *testing.T, _ block) {
			require.Equal(t, "drwxrwsr-x root jobs\n", team(t).must("stat -c '%A %U %G' /shared/locks"))
		}},
		{has: "-g convert batch", play: as("alice", "", commands{calls: []string{"make-report"}})},
		{has: "clean --results report", play: as("bob", aliceDid, commands{
			calls: []string{"make-report"}, says: map[string]string{"logs part01": "one"},
		})},
		{has: "# carol", play: as("carol", strings.ReplaceAll(aliceDid, "umask 077", "umask 022"), commands{
			after: "! " + by("carol", "-d /shared/locks run -n report -- make-report") + "; ! " + by("carol", "-d /shared/locks clean --results report"),
			calls: []string{},
		})},
		{has: "-n tidy", play: func(t *testing.T, b block) {
			crontab{now: "02:29:57", calls: map[string]int{"tidy": 1}, before: "useradd -M alice 2>/dev/null; getent group jobs >/dev/null || groupadd jobs; usermod -aG jobs alice; " +
				"install -d -m 2775 -o root -g jobs /shared/locks; cp /usr/local/bin/work /usr/local/bin/tidy; " + by("alice", "-d /shared/locks run -q -n tidy -- true")}.play(t, b)
		}},
		{has: "--trust alice", play: as("root", "install -d -m 755 -o alice /shared/alice; "+by("alice", "-d /shared/alice run -q -n nightly -- true")+
			"; if multilock -d /shared/alice run -n nightly -- true; then exit 1; fi", commands{calls: []string{"nightly.sh"}})},
		{has: "install -d -m 1777", play: as("root", "", commands{after: "test -k /shared/everybody"})},
		{has: "/shared/everybody run", play: as("alice", "install -d -m 1777 /shared/everybody; ("+by("bob", "-d /shared/everybody run -n x -- sleep 5")+") >/dev/null 2>&1 & sleep 1", commands{calls: []string{"make-report"}})},
		{has: "# bob\nmultilock -d /shared/locks doctor", play: as("bob", aliceDid, commands{codes: map[string]int{"doctor": 1}, says: map[string]string{"doctor": "jobs"}})},
	}
}
