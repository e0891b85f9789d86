// Package actor has a test binary play other processes: holders and contenders that are
// killed, stopped, or on other hosts. A test tells such a process in one value what its
// part is, and then, if it likes, gives it orders and hears its answers, a line of JSON
// each.
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

// What an actor finds in its environment.
const (
	roleVariable = "MULTILOCK_TEST_ROLE"
	partVariable = "MULTILOCK_TEST_PART"
)

// Role is the role of this process, "" if it is the one that runs the tests.
func Role() string { return os.Getenv(roleVariable) }

// Play is for a TestMain: in a process that has a role it plays that, and does not come
// back.
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

// Environ is the environment of a process that is to play a role.
func Environ(role string) []string { return append(os.Environ(), roleVariable+"="+role) }

// Part reads what Prepare was told.
func Part(into any) error { return json.Unmarshal([]byte(os.Getenv(partVariable)), into) }

// InputEnds is a context that ends with this process's input.
func InputEnds() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}

// Obey does what is ordered, and answers, until the orders end.
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

// Actor is the test's end of another process.
type Actor struct {
	*exec.Cmd
	Input   io.WriteCloser // whose end tells most roles to end
	orders  *json.Encoder
	answers *json.Decoder
	wait    func() error
}

// Prepare makes a process that is to play a role, run by a command if one is given,
// such as one that changes its user or its host. Before it is started anything about it
// can be changed. Of one whose standard output is not set the test hears the answers.
func Prepare(t testing.TB, role string, part any, by ...string) *Actor {
	t.Helper()
	told, err := json.Marshal(part)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	line := append(by, self)
	a := &Actor{Cmd: exec.Command(line[0], line[1:]...)} //nolint:gosec // our own
	a.Env = append(Environ(role), partVariable+"="+string(told))
	a.Stderr = os.Stderr
	return a
}

// Start starts it. It ends with the test, unless it does so before.
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

// pipe is not one of package exec's: those are closed as soon as the process has ended,
// though what it started may live, and what it has said may not be read yet.
func pipe(t testing.TB) (out, in *os.File) {
	t.Helper()
	out, in, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = out.Close(), in.Close() })
	return out, in
}

// Wait waits for its end, as often as it is called, and from wherever.
func (a *Actor) Wait() error { return a.wait() }

// End kills it, as a crash would, and reaps it. It may have ended.
func (a *Actor) End() { _, _ = a.Process.Kill(), a.Wait() }

// Signal sends a signal, which must arrive.
func (a *Actor) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	require.NoError(t, a.Process.Signal(s))
}

// Tell gives an order without waiting for the answer.
func (a *Actor) Tell(t testing.TB, order any) {
	t.Helper()
	require.NoError(t, a.orders.Encode(order))
}

// Hear waits for an answer.
func (a *Actor) Hear(t testing.TB, into any) {
	t.Helper()
	require.NoError(t, a.answers.Decode(into), "the process ended without an answer")
}

// patience ends what hangs. Nothing that works comes near it, on any machine.
const patience = 2 * time.Minute

// within kills the process if f takes too long.
func (a *Actor) within(f func()) {
	dog := time.AfterFunc(patience, func() { _ = a.Process.Kill() })
	defer dog.Stop()
	f()
}
