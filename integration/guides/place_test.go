package guides_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	limit = 5 * time.Minute // for anything that would otherwise hang: a guide's program is compiled, on a busy machine
	poll  = 50 * time.Millisecond
	// ran has a line for each call of a program that a guide expects the user to have.
	ran = "/var/tmp/ran"
	// mail has the mail that cron sent.
	mail = "/var/tmp/mail"
)

// standIn logs its name and arguments.
const standIn = `#!/bin/sh
echo "${0##*/}${1:+ }$*" >>` + ran + "\n"

// place is an environment for the guides: /shared, the programs that they expect, three hosts.
type place struct {
	*testing.T
	work string // working directory of the commands
}

// newPlace empties /shared and creates a working directory with these programs.
func newPlace(t *testing.T, here ...string) *place {
	t.Helper()
	work, err := os.MkdirTemp("", "work-") // t.TempDir would contain the block's first line
	require.NoError(t, err)
	p := &place{t, work}
	p.must("rm -rf /shared/* /shared/.[!.]* " + ran + " " + mail + "; : >" + ran + "; : >" + mail + "; chmod 666 " + ran)
	p.Cleanup(func() { p.must("rm -rf /shared/* /shared/.[!.]*") })
	for _, name := range here {
		p.program(filepath.Join(p.work, name), standIn)
	}
	return p
}

func (p *place) program(path, text string) {
	p.Helper()
	require.NoError(p, os.WriteFile(path, []byte(text), 0o755))
}

func (p *place) write(path, text string) {
	p.Helper()
	require.NoError(p, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(p, os.WriteFile(path, []byte(text), 0o644))
}

// environ returns the environment right after a login.
func environ() []string {
	return []string{
		"HOME=/root", "LOGNAME=root", "USER=root", "LANG=C.UTF-8", "SHELL=/bin/bash", "TERM=dumb",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + os.Getenv("PATH"),
	}
}

type ended struct {
	code        int
	out, errout string
}

// sh runs a script until it exits.
func (p *place) sh(script string) ended {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit) // a cleanup has no other context
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	var out, errout bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.work, environ(), &out, &errout
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(p, err, "%s: %s%s", script, &out, &errout)
	}
	return ended{cmd.ProcessState.ExitCode(), out.String(), errout.String()}
}

func (p *place) must(script string) string {
	p.Helper()
	got := p.sh(script)
	require.Zero(p, got.code, "%s: %s%s", script, got.out, got.errout)
	return got.out
}

// eventually waits until a script succeeds.
func (p *place) eventually(script string) {
	p.Helper()
	var got ended
	require.Eventually(p, func() bool { got = p.sh(script); return got.code == 0 }, limit, poll, script)
}

// calls returns the calls of the stand-ins since the last time.
func (p *place) calls() []string {
	p.Helper()
	content, err := os.ReadFile(ran)
	require.NoError(p, err)
	require.NoError(p, os.Truncate(ran, 0))
	return strings.FieldsFunc(string(content), func(r rune) bool { return r == '\n' })
}

// statement is a complete command of a block.
type statement struct {
	text string
	code int
	said string // stdout and stderr
}

// mark separates the outputs of statements.
const mark = "\x1e"

// follow types a block's statements into one shell and returns their results.
func (p *place) follow(text string) []statement {
	p.Helper()
	typed := p.statements(text)
	var script strings.Builder
	for _, s := range typed {
		fmt.Fprintf(&script, "%s\nprintf '%s%%s%s' \"$?\"\n", s, mark, mark)
	}
	got := p.sh("exec 2>&1\n" + script.String() + "wait\n")
	pieces := strings.Split(got.out, mark)
	var done []statement
	for i, text := range typed { // first its output, then its exit code
		require.Less(p, 2*i+1, len(pieces), "the shell ended before %q: %s", text, got.out)
		code, err := strconv.Atoi(pieces[2*i+1])
		require.NoError(p, err)
		done = append(done, statement{text, code, pieces[2*i]})
	}
	return done
}

// statements returns the complete commands of a block, without comments.
func (p *place) statements(text string) []string {
	p.Helper()
	var found []string
	begun := ""
	for line := range strings.Lines(text) {
		begun += line
		if trimmed := strings.TrimSpace(begun); trimmed == "" || strings.HasPrefix(trimmed, "#") && !strings.Contains(trimmed, "\n") {
			begun = ""
			continue
		}
		if !strings.HasSuffix(strings.TrimSuffix(begun, "\n"), `\`) && exec.Command("bash", "-n", "-c", begun).Run() == nil { //nolint:gosec // a guide of ours
			found = append(found, strings.TrimSuffix(begun, "\n"))
			begun = ""
		}
	}
	require.Empty(p, begun, "no complete command")
	return found
}

// hosts starts three machines, as far as multilock, ssh and cron can see. They are called host1 and
// node1, and so on, and live as long as this world.
func hosts(t *testing.T) {
	t.Helper()
	require.NoError(t, startHosts())
}

//nolint:gochecknoglobals // one cluster in one world
var startHosts = sync.OnceValue(func() error {
	out, err := exec.Command("bash", "-e", "testdata/hosts").CombinedOutput()
	if err != nil {
		return fmt.Errorf("start hosts: %w: %s", err, out)
	}
	return nil
})
