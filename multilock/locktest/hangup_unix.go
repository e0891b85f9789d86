//go:build unix

package locktest

import (
	"os"
	"os/signal"
	"syscall"
)

// HearHangups is for a TestMain whose tests send SIGHUP to processes that they
// start. It undoes what nohup did to the tests: a child inherits that a signal
// is ignored, but not that it is caught.
func HearHangups() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
}
