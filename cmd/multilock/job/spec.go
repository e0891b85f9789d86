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

// maxMark keeps the guard's order well below the 64 KiB that a pipe takes in
// without a reader.
const maxMark = 4096

// DefaultGuardGrace is how long the guard waits between SIGTERM and SIGKILL
// when Spec.GuardGrace is zero.
const DefaultGuardGrace = 5 * time.Second

// Spec says what to run and with what.
type Spec struct {
	// Args is the command and its arguments. A command without a slash is
	// searched for in the PATH of Env, as execvp(3) does.
	Args []string
	// Env is the environment, as "NAME=VALUE". Nil stands for our own. If a name
	// occurs more than once, the job gets the last one only.
	Env []string
	// Stdin, Stdout and Stderr become the descriptors 0, 1 and 2 of the job. The
	// same open files, nothing is copied. Nil stands for the null device.
	Stdin, Stdout, Stderr *os.File
	// Mark is an entry of Env that no other process has but the job's, for
	// example one with a random token. On Linux it finds those that have cut
	// every other tie to the job. Empty: they are not found. At most 4096 bytes.
	Mark string
	// JobControl is for the one job that this process stands for. The job gets
	// the terminal when the terminal is ours; when it stops, so do we, with our
	// process group if the terminal had sent the stop only to the job; and
	// SIGTSTP and SIGCONT sent to us are handled: the caller must not forward
	// them too. Without it the job can be stopped and continued without any
	// effect on us.
	JobControl bool
	// MayResume is asked, with JobControl, before a job that was stopped along with
	// us is continued. If it says no, the job stays stopped, and the caller is to
	// end it with Stop. Nil means yes.
	MayResume func() bool
	// Self is who the calling process is. A caller that knows it saves the job the
	// time of finding it out; zero stands for whatever that shows.
	Self process.Identity
	// Allowance, if not nil, says for how long the job may run on without news from us:
	// if we are stopped for longer, the guard ends the job.
	Allowance func() Allowance
	// GuardGrace is the time between SIGTERM and SIGKILL when the guard has to end what
	// a killed or stopped runner left, if Allowance leaves that. Zero stands for
	// DefaultGuardGrace.
	GuardGrace time.Duration
}

// Allowance is for how long a job may run on.
type Allowance struct {
	// Until is when we end the job ourselves, as long as we can; Others when none of it
	// may be at work any more. The guard sends SIGTERM when a quarter of the time between
	// the two has passed, so as not to be in our way, and SIGKILL after three quarters.
	Until, Others boottime.Instant
	// Renewed is closed when both have moved.
	Renewed <-chan struct{}
}

// complete returns the spec with every default filled in.
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

// lastOfEach drops all but the last entry of each name. Programs take the first
// one (getenv(3)), which is the wrong one for a caller that appended its own.
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
