package locktest_test

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/multilock/go/multilock/locktest"
)

// complaints is a test that takes note of its failures.
type complaints struct {
	testing.TB
	all []string
}

func (c *complaints) Helper() {}

func (c *complaints) Errorf(format string, args ...any) {
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

func startShell(t *testing.T, text string) (*Script, *complaints) {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs sh")
	}
	c := &complaints{TB: t}
	return StartScript(c, exec.Command(path, "-c", text)), c
}

func TestScriptAnswers(t *testing.T) {
	s, c := startShell(t, `while read -r line; do echo "heard $line"; done`)
	require.Equal(t, "heard 100%", s.Do("100%"))
	s.Tell("one")
	s.Tell("two")
	require.Equal(t, "heard one", s.Hear())
	require.Equal(t, "heard two", s.Hear())
	require.Empty(t, c.all)
}

// A script that has ended must not be taken for one that has nothing to say.
func TestScriptThatEndsFailsTheTest(t *testing.T) {
	s, c := startShell(t, `read -r line; echo "no $line here" >&2`)
	require.Empty(t, s.Do("acquire"))
	require.Len(t, c.all, 1)
	require.Contains(t, c.all[0], "ended without an answer: no acquire here")
}
