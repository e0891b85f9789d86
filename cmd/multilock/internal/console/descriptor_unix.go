//go:build unix

package console

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// SpeakTo sends all messages to a descriptor that this process inherited. Neither the job nor any
// other child inherits it, so a reader at the other end gets EOF when this process ends.
func (e *Env) SpeakTo(descriptor int) error {
	if descriptor <= unix.Stderr {
		return fmt.Errorf("descriptor %d is one of the job's: choose one from 3 on", descriptor)
	}
	if _, err := unix.FcntlInt(uintptr(descriptor), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return fmt.Errorf("descriptor %d: %w; open it first, such as with: %d>FILE", descriptor, err, descriptor)
	}
	e.speaker = os.NewFile(uintptr(descriptor), "messages")
	return nil
}
