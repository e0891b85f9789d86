//go:build linux

package wire_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/nfslab/wire"
)

func TestFramesSurviveAnyBytes(t *testing.T) {
	var port bytes.Buffer
	all := make([]byte, 3*wire.MaxPayload+7)
	for i := range all {
		all[i] = byte(i)
	}
	sender := wire.NewSender(&port)
	require.NoError(t, sender.Send(wire.Stdout, all))
	require.NoError(t, sender.Send(wire.Exit, []byte("7")))

	var got []byte
	for {
		kind, payload, err := wire.Receive(&port)
		require.NoError(t, err)
		if kind == wire.Exit {
			require.Equal(t, "7", string(payload))
			break
		}
		require.Equal(t, wire.Stdout, kind)
		got = append(got, payload...)
	}
	require.Equal(t, all, got)
	_, _, err := wire.Receive(&port)
	require.ErrorIs(t, err, io.EOF)
}

// An empty frame means the end of input, so a writer that writes nothing must not send one.
func TestStreamSendsNoEmptyFrame(t *testing.T) {
	var port bytes.Buffer
	sender := wire.NewSender(&port)
	_, err := sender.Stream(wire.Stdin).Write(nil)
	require.NoError(t, err)
	require.Zero(t, port.Len())
	require.NoError(t, sender.Send(wire.Stdin, nil))
	kind, payload, err := wire.Receive(&port)
	require.NoError(t, err)
	require.Equal(t, wire.Stdin, kind)
	require.Empty(t, payload)
}

func TestFrameCutShortIsNotTheEnd(t *testing.T) {
	var port bytes.Buffer
	require.NoError(t, wire.NewSender(&port).Send(wire.Stdout, []byte("hello")))
	whole := port.Bytes()
	for n := 1; n < len(whole); n++ {
		_, _, err := wire.Receive(bytes.NewReader(whole[:n]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", n)
	}
}

func TestKernelMessagesAreNoFrames(t *testing.T) {
	_, _, err := wire.Receive(bytes.NewReader([]byte("[    0.000000] Linux version")))
	require.ErrorIs(t, err, wire.ErrGarbled)
}
