package job

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/windows"
)

// procThreadAttributeJobList is PROC_THREAD_ATTRIBUTE_JOB_LIST: the job objects of a new process.
const procThreadAttributeJobList = 0x0002000D

// create starts the command inside the object. If it were added later, a runner killed in between
// would leave it running for ever.
func (o *object) create(spec Spec, path, line string) error {
	files, done, err := spec.files()
	if err != nil {
		return err
	}
	defer done()
	attributes, err := windows.NewProcThreadAttributeList(2)
	if err != nil {
		return err
	}
	defer attributes.Delete()
	err = attributes.Update(procThreadAttributeJobList, unsafe.Pointer(&o.handle), unsafe.Sizeof(o.handle))
	if err == nil {
		err = attributes.Update(windows.PROC_THREAD_ATTRIBUTE_HANDLE_LIST, unsafe.Pointer(&files[0]), uintptr(len(files))*unsafe.Sizeof(files[0]))
	}
	if err != nil {
		return err
	}
	startup := windows.StartupInfoEx{ProcThreadAttributeList: attributes.List()}
	startup.Cb = uint32(unsafe.Sizeof(startup))
	startup.Flags = windows.STARTF_USESTDHANDLES
	startup.StdInput, startup.StdOutput, startup.StdErr = files[0], files[1], files[2]
	return o.begin(path, line, spec.Env, &startup)
}

func (o *object) begin(path, line string, env []string, startup *windows.StartupInfoEx) error {
	path16, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	line16, err := windows.UTF16PtrFromString(line)
	if err != nil {
		return err
	}
	block, err := environBlock(env)
	if err != nil {
		return err
	}
	const flags = windows.CREATE_UNICODE_ENVIRONMENT | windows.EXTENDED_STARTUPINFO_PRESENT | windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED
	var born windows.ProcessInformation
	if err := windows.CreateProcess(path16, line16, nil, nil, true, flags, &block[0], nil, &startup.StartupInfo, &born); err != nil {
		return err
	}
	defer windows.CloseHandle(born.Thread) //nolint:errcheck // the command has its own
	o.command, o.pid = born.Process, born.ProcessId
	if err = o.admit(); err == nil {
		_, err = windows.ResumeThread(born.Thread)
	}
	if err != nil {
		_ = windows.TerminateProcess(o.command, killedCode) // it has not run yet
	}
	return err
}

// admit checks that the command is in the object before it runs: Wine 8 silently ignores the list
// of objects.
func (o *object) admit() error {
	in, err := o.members()
	if err != nil || slices.Contains(in, int(o.pid)) {
		return err
	}
	if err := windows.AssignProcessToJobObject(o.handle, o.command); err != nil {
		return fmt.Errorf("put it into its job object: %w", err)
	}
	return nil
}

// files returns the job's standard files, in handles that only the job inherits.
func (s Spec) files() (handles []windows.Handle, done func(), err error) {
	done = func() {
		for _, handle := range handles {
			_ = windows.CloseHandle(handle)
		}
	}
	given := []*os.File{s.Stdin, s.Stdout, s.Stderr}
	if slices.Contains(given, nil) {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, nil, err
		}
		defer null.Close()
		for i, f := range given {
			given[i] = cmp.Or(f, null)
		}
	}
	self := windows.CurrentProcess()
	for _, f := range given {
		var handle windows.Handle
		if err := windows.DuplicateHandle(self, windows.Handle(f.Fd()), self, &handle, 0, true, windows.DUPLICATE_SAME_ACCESS); err != nil {
			done()
			return nil, nil, err
		}
		handles = append(handles, handle)
	}
	runtime.KeepAlive(given)
	return handles, done, nil
}

// environBlock encodes an environment for CreateProcess.
func environBlock(env []string) ([]uint16, error) {
	var block []uint16
	for _, entry := range env {
		text, err := windows.UTF16FromString(entry)
		if err != nil {
			return nil, err
		}
		block = append(block, text...)
	}
	return append(block, 0, 0), nil
}
