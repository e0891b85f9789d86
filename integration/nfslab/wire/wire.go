//go:build linux

// Package wire is the protocol between the lab's launcher and the agent inside the machine: frames on one
// serial port. It uses a single port to preserve the order: bytes written before the exit code must arrive
// before it.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Kind is the kind of a frame's payload.
type Kind byte

// From the machine.
const (
	Ready  Kind = 'R' // the machine is up; no payload
	Stdout Kind = 'O' // output of the command
	Stderr Kind = 'E'
	Output Kind = 'T' // a piece of the tar archive of /out
	Alive  Kind = 'H' // sent every few seconds, so that the launcher can detect a hang
	Exit   Kind = 'X' // the exit code as a decimal number; the last frame
)

// To the machine.
const (
	Stdin  Kind = 'I' // input of the command; an empty frame ends it
	Resize Kind = 'W' // terminal size, "ROWS COLUMNS"
	Bye    Kind = 'B' // everything has arrived; the machine may power off
)

// MaxPayload is the maximum number of bytes in a frame. A longer frame means that the stream is garbled.
const MaxPayload = 32 << 10

const headerSize = 5

// ErrGarbled is returned for bytes that are not a frame.
var ErrGarbled = errors.New("garbled frame")

// Sender writes frames. It is safe for concurrent use.
type Sender struct {
	mu sync.Mutex
	w  io.Writer
}

// NewSender returns a Sender on w.
func NewSender(w io.Writer) *Sender { return &Sender{w: w} }

// Send writes payload in as many frames as needed; an empty payload is one empty frame.
func (s *Sender) Send(kind Kind, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		piece := payload[:min(len(payload), MaxPayload)]
		if err := s.frame(kind, piece); err != nil {
			return err
		}
		payload = payload[len(piece):]
		if len(payload) == 0 {
			return nil
		}
	}
}

func (s *Sender) frame(kind Kind, payload []byte) error {
	frame := make([]byte, headerSize, headerSize+len(payload))
	frame[0] = byte(kind)
	binary.BigEndian.PutUint32(frame[1:], uint32(len(payload)))
	if _, err := s.w.Write(append(frame, payload...)); err != nil {
		return fmt.Errorf("send frame %q: %w", byte(kind), err)
	}
	return nil
}

// Stream returns a writer that sends its bytes as frames of one kind. It never sends an empty frame.
func (s *Sender) Stream(kind Kind) io.Writer { return stream{s, kind} }

type stream struct {
	sender *Sender
	kind   Kind
}

func (s stream) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := s.sender.Send(s.kind, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Receive reads one frame. It returns io.EOF only between frames, and io.ErrUnexpectedEOF inside one.
func Receive(r io.Reader) (Kind, []byte, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(header[1:])
	if size > MaxPayload {
		return 0, nil, fmt.Errorf("%w: kind %q, %d bytes", ErrGarbled, header[0], size)
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return Kind(header[0]), payload, nil
}
