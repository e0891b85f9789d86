package job

import (
	"os"
	"syscall"
)

// Asks says whether a signal asks a program to end: SIGHUP, SIGINT, SIGQUIT, SIGTERM.
func Asks(sig os.Signal) bool {
	return sig == syscall.SIGHUP || sig == syscall.SIGINT || sig == syscall.SIGQUIT || sig == syscall.SIGTERM
}

// Asked is the signal to end of which the command died, or of which it tells with its
// exit code, as a shell does whose child died of it; 0 if it was none.
func (r Result) Asked() syscall.Signal {
	sig := r.Signal
	if sig == 0 {
		sig = syscall.Signal(r.Code - 128)
	}
	if !Asks(sig) {
		return 0
	}
	return sig
}
