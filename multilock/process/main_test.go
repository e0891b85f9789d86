package process_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
)

// roleVariable makes the test binary play another process: a job, or somebody
// who judges from a place the tests cannot go to themselves.
const roleVariable = "MULTILOCK_PROCESS_TEST_ROLE"

func TestMain(m *testing.M) {
	if name := os.Getenv(roleVariable); name != "" {
		if err := play(name); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			os.Exit(1)
		}
		return
	}
	if err := adoptOrphans(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// sit tells that it runs and stays until its input ends.
func sit() error {
	fmt.Println("{}")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// actor is a process that plays a role; lines of JSON come out of it.
type actor struct {
	*exec.Cmd
	input  io.Writer
	output *bufio.Scanner
}

// prepareActor does not start it, so that the caller can say how.
func prepareActor(t *testing.T, role string) *actor {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	// Not StdinPipe, which Wait closes: members of a group outlive their leader.
	theirs, input, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = theirs.Close(), input.Close() })
	cmd.Stdin = theirs
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	return &actor{Cmd: cmd, input: input, output: bufio.NewScanner(output)}
}

func (a *actor) start(t *testing.T) {
	t.Helper()
	require.NoError(t, a.Start())
	t.Cleanup(func() { a.end() })
}

// end kills and reaps it; a second call does nothing.
func (a *actor) end() {
	_ = a.Process.Kill()
	_ = a.Wait()
}

func (a *actor) hear(t *testing.T, into any) {
	t.Helper()
	require.True(t, a.output.Scan(), "the process ended before it said anything")
	require.NoError(t, json.Unmarshal(a.output.Bytes(), into))
}

func (a *actor) tell(t *testing.T, message any) {
	t.Helper()
	require.NoError(t, json.NewEncoder(a.input).Encode(message))
}

// sitter returns a process that runs.
func sitter(t *testing.T) *actor {
	t.Helper()
	a := prepareActor(t, "sit")
	a.start(t)
	a.hear(t, &struct{}{})
	return a
}

func self(t testing.TB) process.Identity {
	t.Helper()
	id, err := process.Self()
	require.NoError(t, err)
	return id
}

func find(t *testing.T, pid int) process.Identity {
	t.Helper()
	id, err := process.Find(pid)
	require.NoError(t, err)
	return id
}

func requireLife(t *testing.T, want process.Life, got process.Evidence) {
	t.Helper()
	require.Equal(t, want.String(), got.Life.String(), got.Why)
	require.NotEmpty(t, got.Why)
}
