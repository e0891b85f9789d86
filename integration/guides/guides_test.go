package guides_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scene runs a block of a document, unchanged.
type scene struct {
	doc, has string // the document, and text that only this block contains
	play     func(t *testing.T, b block)
}

// TestGuides runs every block of the README and of the guides. A block without a scene fails the test,
// so every new or changed block is run, or its scene says why not.
func TestGuides(t *testing.T) {
	require.NoError(t, os.WriteFile("/usr/local/bin/...", []byte("#!/bin/sh\n"), 0o755)) // the user's own commands
	for _, name := range []string{"nightly.sh", "sync.sh", "hourly.sh", "report.sh", "import.sh", "work", "next-step", "convert", "job", "task", "mail", "logger", "update-if-newer"} {
		require.NoError(t, os.WriteFile("/usr/local/bin/"+name, []byte(standIn), 0o755))
	}
	played := map[string]bool{}
	for _, b := range allBlocks(t) {
		var found []scene
		for _, s := range scenes() {
			if s.doc == b.doc && strings.Contains(b.text, s.has) {
				found = append(found, s)
				played[s.doc+s.has] = true
			}
		}
		first, _, _ := strings.Cut(b.text, "\n")
		t.Run(b.doc+"/"+first, func(t *testing.T) {
			require.Len(t, found, 1, "%s:%d: no scene runs this block:\n%s", b.doc, b.line, b.text)
			found[0].play(t, b)
		})
	}
	for _, s := range scenes() {
		require.True(t, played[s.doc+s.has], "no block of %s contains %q any more", s.doc, s.has)
	}
}

func scenes() []scene {
	var all []scene
	for doc, of := range map[string][]scene{
		"README.md": readme(), "cluster.md": cluster(), "coming-from.md": comingFrom(), "cron.md": cronGuide(),
		"go.md": goGuide(), "monitoring.md": monitoring(), "pipeline.md": pipeline(), "timers.md": timers(), "users.md": users(),
		"from-filelock.md": fromFilelock(), "from-multilock-2012.md": fromMultiLock(), "upgrading.md": upgrading(),
	} {
		for _, s := range of {
			s.doc = doc
			all = append(all, s)
		}
	}
	return all
}

// notCommands is for blocks that are shown, not typed.
func notCommands(why string) func(*testing.T, block) {
	return func(t *testing.T, _ block) { t.Log(why) }
}

// commands is a block that is typed into a shell, line by line.
type commands struct {
	here   []string          // programs in the working directory
	before string            // commands that the user has already run
	codes  map[string]int    // exit codes other than 0, by a part of the line
	says   map[string]string // patterns for the output, by a part of the line
	skip   map[string]string // why lines are not run, by a part of the line
	calls  []string          // calls of the stand-ins, in any order
	after  string            // must succeed afterwards
	hosts  bool
	each   bool // each line in its own shell
}

func (c commands) play(t *testing.T, b block) {
	if c.hosts {
		hosts(t)
	}
	p := newPlace(t, c.here...)
	if c.before != "" {
		p.must(c.before)
	}
	var lines []string
	for line := range strings.Lines(b.text) {
		if why, found := entry(c.skip, line); found {
			t.Logf("not run: %s: %s", strings.TrimSpace(line), why)
			continue
		}
		lines = append(lines, line)
	}
	typed := []string{strings.Join(lines, "")}
	if c.each {
		typed = lines
	}
	for _, text := range typed {
		for _, s := range p.follow(text) {
			t.Logf("$ %s\n%s", s.text, s.said)
			code, _ := entry(c.codes, s.text)
			require.Equal(t, code, s.code, "%s\n%s", s.text, s.said)
			if pattern, found := entry(c.says, s.text); found {
				require.Regexp(t, pattern, s.said, s.text)
			}
		}
	}
	if c.after != "" {
		p.must(c.after)
	}
	if c.calls != nil {
		require.ElementsMatch(t, c.calls, p.calls())
	}
}

// checkout returns the root directory of this source tree.
func checkout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

// entry returns the value whose key is part of a line.
func entry[V any](of map[string]V, line string) (found V, is bool) {
	for part, value := range of {
		if strings.Contains(line, part) {
			return value, true
		}
	}
	return found, false
}

// goProgram runs a complete Go program.
func goProgram(t *testing.T, b block) {
	p := newPlace(t)
	p.write(p.work+"/main.go", b.text)
	p.must("cd " + checkout(t) + " && GOFLAGS=-mod=readonly GOPROXY=off GOTOOLCHAIN=local go run " + p.work + "/main.go")
}
