package nfs_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// actor is a process on a host that does with locks what it is told: for what
// needs a process of the host's own, which can be killed, paused or judged.
type actor struct {
	*exec.Cmd
	host    host
	pid     int // on its host
	input   io.WriteCloser
	orders  *json.Encoder
	answers *json.Decoder
}

// newActor starts an actor that has opened the place.
func newActor(t testing.TB, h host, p place) *actor {
	t.Helper()
	return startActor(t, h, order{Do: "open", Path: p.on(h)})
}

// startActor starts an actor with its first order, run by a command such as
// setpriv if one is given.
func startActor(t testing.TB, h host, first order, runner ...string) *actor {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	command := append(append([]string{h.name}, runner...), self)
	a := &actor{Cmd: exec.Command("on", command...), host: h}
	a.Env = append(os.Environ(), roleVariable+"=actor")
	a.Stderr = os.Stderr
	a.input, err = a.StdinPipe()
	require.NoError(t, err)
	output, err := a.StdoutPipe()
	require.NoError(t, err)
	a.orders, a.answers = json.NewEncoder(a.input), json.NewDecoder(output)
	require.NoError(t, a.Start())
	t.Cleanup(a.end)
	a.pid = a.must(t, first).PID
	return a
}

// end ends the process as a crash would; a second call does nothing.
func (a *actor) end() {
	_ = a.Process.Kill()
	_ = a.Wait()
}

func (a *actor) tell(t testing.TB, o order) {
	t.Helper()
	require.NoError(t, a.orders.Encode(o))
}

func (a *actor) hear(t testing.TB) answer {
	t.Helper()
	var got answer
	require.NoError(t, a.answers.Decode(&got), "the actor ended without an answer")
	return got
}

func (a *actor) do(t testing.TB, o order) answer {
	t.Helper()
	a.tell(t, o)
	return a.hear(t)
}

// must gives an order that has to succeed.
func (a *actor) must(t testing.TB, o order) answer {
	t.Helper()
	got := a.do(t, o)
	require.Empty(t, got.Error)
	return got
}
