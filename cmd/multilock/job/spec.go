package job

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
)

// maxMark keeps the guard's order well below the 64 KiB that fit into a pipe without a reader.
const maxMark = 4096

// DefaultGuardGrace is the default of Spec.GuardGrace.
const DefaultGuardGrace = 5 * time.Second

// Spec describes what to run, and how.
type Spec struct {
	// Args is the command and its arguments. A command without a slash is searched for in the PATH
	// of Env, as execvp(3) does.
	Args []string
	// Env is the environment, as "NAME=VALUE"; that of the runner if nil. If a name occurs more
	// than once, the job only gets the last one.
	Env []string
	// Stdin, Stdout and Stderr become the descriptors 0, 1 and 2 of the job: the same open files,
	// without copying. Nil means the null device.
	Stdin, Stdout, Stderr *os.File
	// Mark is an entry of Env that only the job's processes have, for example one with a random token. On
	// Linux it identifies processes that have no other connection to the job; without it they are not
	// found. At most 4096 bytes.
	Mark string
	// JobControl is for the one job that this process represents. The job gets the terminal when
	// the runner has it. When the job stops, so does the runner, with its process group if the
	// terminal sent the stop only to the job. SIGTSTP and SIGCONT sent to the runner are handled;
	// the caller must not forward them. Without JobControl, stopping and continuing the job has no
	// effect on the runner.
	JobControl bool
	// MayResume is called, with JobControl, before a job that was stopped along with the runner is
	// continued. If it returns false, the job stays stopped, and the caller must end it with Stop. Nil
	// always allows it.
	MayResume func() bool
	// Self is the calling process, if known, to save the lookup.
	Self process.Identity
	// Allowance, if not nil, returns how long the job may run while the runner is stopped. After that the
	// guard ends the job.
	Allowance func() Allowance
	// GuardGrace is the time between SIGTERM and SIGKILL when the guard ends the job of a killed or
	// stopped runner, as far as Allowance permits; DefaultGuardGrace if 0.
	GuardGrace time.Duration
}

// Allowance limits how long a job may run.
type Allowance struct {
	// Until is when the runner ends the job itself if it can; Others is when no process of the job may
	// run any more. The guard sends SIGTERM after a quarter of the time between the two, to leave the
	// runner some time, and SIGKILL after three quarters.
	Until, Others boottime.Instant
	// Renewed is closed when both were extended.
	Renewed <-chan struct{}
}

// complete returns the spec with all defaults.
func (s Spec) complete() (Spec, error) {
	if s.Env == nil {
		s.Env = os.Environ()
	}
	s.Env = lastOfEach(s.Env)
	if s.GuardGrace == 0 {
		s.GuardGrace = DefaultGuardGrace
	}
	return s, s.check()
}

func (s Spec) check() error {
	switch {
	case len(s.Args) == 0:
		return errors.New("start job: no command")
	case s.GuardGrace < 0:
		return fmt.Errorf("start job: negative grace of the guard: %v", s.GuardGrace)
	case len(s.Mark) > maxMark:
		return fmt.Errorf("start job: mark of %d bytes, at most %d are allowed", len(s.Mark), maxMark)
	case s.Mark != "" && !slices.Contains(s.Env, s.Mark):
		return errors.New("start job: the mark is not in the environment")
	}
	for _, text := range slices.Concat(s.Args, s.Env) {
		if strings.IndexByte(text, 0) >= 0 {
			return fmt.Errorf("start job: NUL byte in %q", text)
		}
	}
	return nil
}

// lastOfEach drops all but the last entry of each name. Programs use the first one (getenv(3)),
// which is wrong if the caller appended its own.
func lastOfEach(env []string) []string {
	seen := make(map[string]bool, len(env))
	kept := make([]string, 0, len(env))
	for _, entry := range slices.Backward(env) {
		name, _, named := strings.Cut(entry, "=")
		if named && seen[name] {
			continue
		}
		seen[name] = true
		kept = append(kept, entry)
	}
	slices.Reverse(kept)
	return kept
}
