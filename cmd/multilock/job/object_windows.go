package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

const (
	firstPoll = time.Millisecond
	lastPoll  = 100 * time.Millisecond
	// killPatience is how long the kernel may take to end processes.
	killPatience = 10 * time.Second
)

// object is a job object with its command. The open handle keeps the command's number reserved.
type object struct {
	pid     uint32
	command windows.Handle

	mu     sync.Mutex
	handle windows.Handle // 0 when it is empty or was released
}

func newObject() (*object, error) {
	handle, err := windows.CreateJobObject(nil, nil) // not inheritable, so that it ends with the runner
	if err != nil {
		return nil, fmt.Errorf("create a job object: %w", err)
	}
	o := &object{handle: handle}
	if err := o.limit(windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE); err != nil {
		o.close()
		return nil, fmt.Errorf("bind a job object to this process: %w", err)
	}
	return o, nil
}

func (o *object) limit(flags uint32) error {
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: flags}}
	_, err := windows.SetInformationJobObject(o.handle, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return err
}

// wait waits for the command's end.
func (o *object) wait() (code uint32, err error) {
	if _, err = windows.WaitForSingleObject(o.command, windows.INFINITE); err == nil {
		err = windows.GetExitCodeProcess(o.command, &code)
	}
	return code, err
}

// release lets the processes that the command left behind live on. The object is kept, to end them later.
func (o *object) release() {
	if left, err := o.members(); err == nil && len(left) == 0 {
		o.close()
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handle != 0 {
		_ = o.limit(0) // otherwise they end with the runner
	}
}

// close closes an empty object, or ends all processes in it.
func (o *object) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, handle := range []*windows.Handle{&o.handle, &o.command} {
		if *handle != 0 {
			_ = windows.CloseHandle(*handle)
			*handle = 0
		}
	}
}

// ask sends Ctrl-Break to the command's console process group.
func (o *object) ask() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.command == 0 {
		return os.ErrProcessDone
	}
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, o.pid)
}

// end ends all processes: it sends Ctrl-Break if possible, and terminates those still alive after the
// grace or when ctx is done.
func (o *object) end(ctx context.Context, grace time.Duration) error {
	if left, err := o.members(); err == nil && len(left) == 0 {
		return nil
	}
	if grace > 0 && o.ask() == nil {
		ctx, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		if left, err := poll(ctx, o.members); err == nil && len(left) == 0 {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	left, err := poll(ctx, o.kill)
	switch {
	case err != nil:
		return fmt.Errorf("stop job %d: %w", o.pid, err)
	case len(left) > 0:
		return &LingeringError{PIDs: left}
	}
	return nil
}

// kill terminates all processes, and returns those that remain.
func (o *object) kill() ([]int, error) {
	o.mu.Lock()
	if o.handle != 0 {
		_ = windows.TerminateJobObject(o.handle, killedCode) // the list of members shows whether it worked
	}
	o.mu.Unlock()
	return o.members()
}

// mostListed bounds how many members are listed at once.
const mostListed = 256

// members returns the living processes in the object, at most mostListed.
func (o *object) members() ([]int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handle == 0 {
		return nil, nil
	}
	var list struct {
		assigned, listed uint32
		pids             [mostListed]uintptr
	}
	err := windows.QueryInformationJobObject(o.handle, windows.JobObjectBasicProcessIdList, uintptr(unsafe.Pointer(&list)), uint32(unsafe.Sizeof(list)), nil)
	if err != nil && !errors.Is(err, windows.ERROR_MORE_DATA) {
		return nil, fmt.Errorf("list the processes of a job object: %w", err)
	}
	pids := make([]int, 0, list.listed)
	for _, pid := range list.pids[:min(list.listed, mostListed)] {
		pids = append(pids, int(pid))
	}
	return pids, nil
}

// poll calls look until no process is left, ctx is done, or look fails.
func poll(ctx context.Context, look func() ([]int, error)) ([]int, error) {
	for wait := firstPoll; ; wait = min(2*wait, lastPoll) {
		left, err := look()
		if err != nil || len(left) == 0 {
			return left, err
		}
		select {
		case <-ctx.Done():
			return left, nil
		case <-time.After(wait):
		}
	}
}
