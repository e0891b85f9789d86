//go:build unix

package locktest

import (
	"os"
	"os/signal"
	"syscall"
)

// HearHangups is for a TestMain whose tests send SIGHUP or SIGINT to processes that they start. It undoes
// the effect of nohup, and of a shell that runs the tests in the background: a child inherits that a signal
// is ignored, but not that it is caught.
func HearHangups() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
