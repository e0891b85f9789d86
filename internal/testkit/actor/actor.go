// Package actor runs a test binary as other processes: holders and contenders that are killed, stopped,
// or on other hosts. A test passes its configuration to such a process in one value. After that it may
// send orders and receive answers, each as a line of JSON.
package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The environment variables of an actor.
const (
	roleVariable = "MULTILOCK_TEST_ROLE"
	partVariable = "MULTILOCK_TEST_PART"
)

// Role returns the role of this process, "" for the process that runs the tests.
func Role() string { return os.Getenv(roleVariable) }

// Play is called by TestMain: in a process with a role it plays that role, and does not return.
func Play(roles map[string]func() error) {
	name := Role()
	if name == "" {
		return
	}
	role := roles[name]
	if role == nil {
		role = func() error { return errors.New("there is no such role") }
	}
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Environ returns the environment of a process with a role.
func Environ(role string) []string { return append(os.Environ(), roleVariable+"="+role) }

// Part decodes the value that was passed to Prepare.
func Part(into any) error { return json.Unmarshal([]byte(os.Getenv(partVariable)), into) }

// InputEnds returns a context that ends at EOF of this process's standard input.
func InputEnds() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}

// Obey executes orders and writes answers, until the orders end.
func Obey[Order, Answer any](orders io.Reader, answers io.Writer, do func(Order) Answer) error {
	in, out := json.NewDecoder(orders), json.NewEncoder(answers)
	for {
		var o Order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := out.Encode(do(o)); err != nil {
			return err
		}
	}
}

// Actor is a test's handle of another process.
type Actor struct {
	*exec.Cmd
	Input   io.WriteCloser // closing it tells most roles to end
	orders  *json.Encoder
	answers *json.Decoder
	wait    func() error
}

// Prepare makes a process for a role, run by the given command if there is one, such as a command that
// changes its user or its host. The caller may change the process before the start. If its standard
// output is not set, the test receives the answers.
func Prepare(t testing.TB, role string, part any, by ...string) *Actor {
	t.Helper()
	told, err := json.Marshal(part)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	line := append(by, self)
	a := &Actor{Cmd: exec.Command(line[0], line[1:]...)} //nolint:gosec // our own executable
	a.Env = append(Environ(role), partVariable+"="+string(told))
	a.Stderr = os.Stderr
	return a
}

// Start starts the process. It is killed after the test, at the latest.
func (a *Actor) Start(t testing.TB) {
	t.Helper()
	theirs, input := pipe(t)
	a.Stdin, a.Input, a.orders = theirs, input, json.NewEncoder(input)
	started := []*os.File{theirs}
	if a.Stdout == nil {
		output, theirs := pipe(t)
		a.Stdout, a.answers = theirs, json.NewDecoder(output)
		started = append(started, theirs)
	}
	require.NoError(t, a.Cmd.Start())
	for _, f := range started {
		require.NoError(t, f.Close())
	}
	a.wait = sync.OnceValue(a.Cmd.Wait)
	t.Cleanup(a.End)
}

// pipe replaces package exec's pipes, which are closed when the process ends, although its children may
// live, and its last output may be unread.
func pipe(t testing.TB) (out, in *os.File) {
	t.Helper()
	out, in, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = out.Close(), in.Close() })
	return out, in
}

// Wait waits for the end of the process. It may be called repeatedly and concurrently.
func (a *Actor) Wait() error { return a.wait() }

// End kills the process, as a crash would, and reaps it. It may have ended before.
func (a *Actor) End() { _, _ = a.Process.Kill(), a.Wait() }

// Signal sends a signal, and requires success.
func (a *Actor) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	require.NoError(t, a.Process.Signal(s))
}

// Tell sends an order without waiting for the answer.
func (a *Actor) Tell(t testing.TB, order any) {
	t.Helper()
	require.NoError(t, a.orders.Encode(order))
}

// Hear waits for an answer.
func (a *Actor) Hear(t testing.TB, into any) {
	t.Helper()
	require.NoError(t, a.answers.Decode(into), "the process ended without an answer")
}

// patience is the timeout of calls that should not hang, far above any normal duration.
const patience = 2 * time.Minute

// within kills the process if f takes too long.
func (a *Actor) within(f func()) {
	dog := time.AfterFunc(patience, func() { _ = a.Process.Kill() })
	defer dog.Stop()
	f()
}
