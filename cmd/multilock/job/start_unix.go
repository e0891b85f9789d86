//go:build unix

package job

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/process"
)

// Start starts the command and returns once it has been executed. The error is a *NotFoundError or
// a *NotRunnableError if the command cannot be run, and any other if something else fails.
//
// A file that is executable, but neither a program nor a script with an interpreter line, is run by
// /bin/sh, as execvp(3) does.
func Start(spec Spec) (*Job, error) {
	spec, err := spec.complete()
	if err != nil {
		return nil, err
	}
	path, err := spec.lookPath()
	if err != nil {
		return nil, err
	}
	keepIgnored()
	j := &Job{spec: spec, stopping: make(chan struct{}), over: make(chan struct{}), done: make(chan struct{})}
	started := make(chan error, 1)
	go j.live(path, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return j, nil
}

// keepIgnored restores for the job the one disposition that Go changes in a common case. A shell without
// job control starts `cmd &` with SIGINT and SIGQUIT ignored (POSIX, Asynchronous Lists). Go keeps
// SIGINT ignored but installs its handler for SIGQUIT, which exec(2) resets to the default.
func keepIgnored() {
	if signal.Ignored(syscall.SIGINT) {
		signal.Ignore(syscall.SIGQUIT)
	}
}

// live runs the whole life of the job on one thread: the kernel sends the parent death signal when
// the forking thread ends, not the process (prctl(2), PR_SET_PDEATHSIG), and Go ends threads at any
// time.
func (j *Job) live(path string, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := j.begin(path); err != nil {
		started <- err
		return
	}
	started <- nil
	j.watch()
}

func (j *Job) begin(path string) error {
	if j.spec.JobControl {
		j.control = newControl(j)
	}
	j.started = time.Now()
	if err := j.fork(path); err != nil {
		if j.control != nil {
			j.control.finish(false)
		}
		return err
	}
	j.tree = newTree(j.pid, j.spec.Mark)
	j.expectGuard()
	if j.control != nil {
		j.help(j.control.serve)
	}
	return nil
}

func (s Spec) findGroup(pgid int) (process.Group, error) {
	if s.Self == (process.Identity{}) {
		return process.FindGroup(pgid)
	}
	return s.Self.FindGroup(pgid)
}

// help runs a goroutine that ends with the job.
func (j *Job) help(work func()) {
	j.helpers.Add(1)
	go func() {
		defer j.helpers.Done()
		work()
	}()
}

func (j *Job) fork(path string) error {
	files, done, err := j.spec.files()
	if err != nil {
		return fmt.Errorf("start job: %w", err)
	}
	defer done()
	attr := &syscall.ProcAttr{Env: j.spec.Env, Files: files, Sys: j.sysProcAttr()}
	if j.control != nil {
		j.control.prepare(attr.Sys)
	}
	j.pid, err = forkExec(path, j.spec.Args, attr)
	runtime.KeepAlive(j.spec)
	if err != nil {
		return j.spec.explain(path, err)
	}
	return nil
}

// files returns the job's first three files, with the null device for those that are nil. They are
// open until done is called.
func (s Spec) files() (files []uintptr, done func(), err error) {
	given := []*os.File{s.Stdin, s.Stdout, s.Stderr}
	done = func() {}
	if slices.Contains(given, nil) {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, nil, err
		}
		done = func() { _ = null.Close() }
		for i, f := range given {
			given[i] = cmp.Or(f, null)
		}
	}
	for _, f := range given {
		files = append(files, f.Fd())
	}
	return files, done, nil
}

func forkExec(path string, args []string, attr *syscall.ProcAttr) (int, error) {
	pid, err := syscall.ForkExec(path, args, attr)
	if !errors.Is(err, syscall.ENOEXEC) {
		return pid, err
	}
	script := append([]string{"/bin/sh", path}, args[1:]...)
	return syscall.ForkExec("/bin/sh", script, attr)
}

// Shell returns the command that runs a line in the system's shell.
func Shell(line string) []string { return []string{"/bin/sh", "-c", line} }
