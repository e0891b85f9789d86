//go:build unix && !linux

package job

import (
	"os/signal"
	"syscall"
)

// withoutTTOU runs a call on the terminal with SIGTTOU ignored in the whole
// process, for want of a call in Go that changes the mask of one thread. A job
// started at the same moment would inherit that.
func withoutTTOU(call func() error) error {
	if !signal.Ignored(syscall.SIGTTOU) {
		signal.Ignore(syscall.SIGTTOU)
		defer signal.Reset(syscall.SIGTTOU)
	}
	return call()
}
