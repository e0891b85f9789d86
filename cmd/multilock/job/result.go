package job

import (
	"os"
	"syscall"
	"time"
)

// Result is how the command, the direct child, ended.
type Result struct {
	// Code is the exit code, or 128 + n if signal n killed the command.
	Code int
	// Signal is the signal that killed the command, 0 if it exited by itself. A
	// caller whose job died by SIGINT should die by it as well, because shells
	// look at that to decide whether to go on; see Result.Reraise.
	Signal syscall.Signal
	// Terminal says that the job had the terminal when it ended, so that a key
	// like Ctrl-C reached the job alone and not our own process group.
	Terminal bool
	// Started is when the command was started.
	Started time.Time
	// Elapsed is the time from then to its end, by the monotonic clock.
	Elapsed time.Duration
	// User and System are the processor time of the command and of those of its
	// descendants that it waited for (wait4(2)).
	User, System time.Duration
	// GuardError is why the guard could not be started, nil if it was or was
	// not needed: then a killed runner would have left processes behind.
	GuardError error
}

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
