//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/multilock/go/integration/nfslab/cpio"
	"github.com/multilock/go/integration/nfslab/guest"
	"github.com/multilock/go/integration/nfslab/image"
	"github.com/multilock/go/integration/nfslab/vm"
	"github.com/multilock/go/integration/nfslab/wire"
)

// guestDir is the directory of the caller's files in the machine.
const guestDir = "guest"

// lab boots machines from cached images.
type lab struct {
	cache image.Cache
}

// run boots a machine, runs the job in it, and returns the job's exit code.
func (l lab) run(ctx context.Context, opts options, job wire.Job) (int, error) {
	if opts.timeout > 0 {
		late := failure{exitTimeout, fmt.Errorf("time limit of %s passed", opts.timeout)}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, opts.timeout, late)
		defer cancel()
	}
	base, err := l.cache.Current(ctx)
	if err != nil {
		return 0, cause(ctx, err)
	}
	accel := opts.accel
	if accel == "" {
		if accel, err = vm.BestAccel(ctx, l.cache.Dir, base.Kernel); err != nil {
			return 0, cause(ctx, err)
		}
	}
	kernel := base.Kernel
	if accel == vm.UML {
		kernel = base.Program
	}
	initrd, err := l.makeInitrd(base.Initrd, opts, job)
	if err != nil {
		return 0, err
	}
	defer initrd.Close()
	return l.boot(ctx, opts, job, vm.Config{
		Kernel: kernel, Initrd: initrd, Accel: accel, CPUs: 2, MemoryMB: opts.memoryMB,
		Terminal: job.Terminal, ControlPort: wire.ControlPort, ConsoleCopy: consoleCopy(opts),
	})
}

func (l lab) boot(ctx context.Context, opts options, job wire.Job, config vm.Config) (int, error) {
	restore, err := keepTerminal(job.Terminal)
	if err != nil {
		return 0, err
	}
	defer restore()
	machine, err := vm.Start(config)
	if err != nil {
		return 0, err
	}
	defer machine.Stop()
	defer context.AfterFunc(ctx, func() { machine.Control.Close() })() // ends the session
	code, err := newSession(machine, job, opts.out).talk()
	if err != nil {
		return 0, explain(ctx, machine, err)
	}
	const patience = 20 * time.Second
	return code, machine.Wait(patience)
}

// explain adds the end of the console's output to an error that the caller did not cause.
func explain(ctx context.Context, machine *vm.Machine, err error) error {
	machine.Stop()
	const lines = 40
	console := machine.Console.Tail(lines)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
		if ctx.Err() == context.Canceled { // a user who pressed Ctrl-C knows why
			return err
		}
	}
	return fmt.Errorf("%w\nlast lines of the machine's console:\n%s", err, console)
}

// cause returns the reason why the context ended, if it has, instead of the call's resulting error.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func consoleCopy(opts options) io.Writer {
	if opts.verbose {
		return os.Stderr
	}
	return nil
}

// makeInitrd returns the cached archive followed by one with this run's files: the kernel unpacks the
// second over the first. The file has no name, so that it cannot be left behind.
func (l lab) makeInitrd(base string, opts options, job wire.Job) (*os.File, error) {
	initrd, err := os.CreateTemp(l.cache.Dir, image.RunPrefix)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(initrd.Name()); err != nil {
		return nil, errors.Join(err, initrd.Close())
	}
	if err := writeInitrd(initrd, base, opts, job); err != nil {
		return nil, errors.Join(err, initrd.Close())
	}
	return initrd, nil
}

func writeInitrd(initrd io.Writer, base string, opts options, job wire.Job) error {
	from, err := os.Open(base)
	if err != nil {
		return err
	}
	defer from.Close()
	if _, err := io.Copy(initrd, from); err != nil {
		return fmt.Errorf("copy root file system: %w", err)
	}
	buffered := bufio.NewWriterSize(initrd, 1<<20)
	if err := writeRunFiles(cpio.NewWriter(buffered), opts.files, job); err != nil {
		return fmt.Errorf("files of this run: %w", err)
	}
	return buffered.Flush()
}

func writeRunFiles(archive *cpio.Writer, files []string, job wire.Job) error {
	if err := guest.Write(archive); err != nil {
		return err
	}
	text, err := json.Marshal(job)
	if err != nil {
		return err
	}
	if err := archive.Bytes(wire.JobPath, 0o644, text); err != nil {
		return err
	}
	if err := archive.Dir(guestDir, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		if err := addFile(archive, file); err != nil {
			return err
		}
	}
	return archive.Finish()
}

// addFile adds a file, or a directory with all its content, under its base name. It follows a link.
func addFile(archive *cpio.Writer, file string) error {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return err
	}
	name := guestDir + "/" + filepath.Base(absolute)
	if err := archive.Copy(name, real); err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil || !info.IsDir() {
		return err
	}
	return archive.Tree(real, func(relative string) string { return name + "/" + relative })
}
