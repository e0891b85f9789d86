//go:build linux

// Package agent is the launcher's agent inside the machine: it runs the job, sends its output and exit
// code, then the files in /out, and powers the machine off.
package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/integration/nfslab/wire"
)

const outputDir = "/out"

// Main runs the job of this boot. It returns only with an error; otherwise the machine powers off.
func Main() error {
	job, err := readJob()
	if err != nil {
		return err
	}
	port, err := openPort(wire.ControlPort)
	if err != nil {
		return err
	}
	agent := &agent{job: job, sender: wire.NewSender(port), bye: make(chan struct{})}
	stdin, input := io.Pipe()
	go agent.receive(port, input)
	go agent.beat()
	if err := agent.serve(stdin); err != nil {
		return err
	}
	unix.Sync()
	return unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

type agent struct {
	job    wire.Job
	sender *wire.Sender
	bye    chan struct{}
}

func readJob() (wire.Job, error) {
	var job wire.Job
	text, err := os.ReadFile(wire.JobPath)
	if err != nil {
		return job, err
	}
	if err := json.Unmarshal(text, &job); err != nil {
		return job, fmt.Errorf("%s: %w", wire.JobPath, err)
	}
	if len(job.Command) == 0 {
		return job, fmt.Errorf("%s: no command", wire.JobPath)
	}
	return job, nil
}

// openPort opens a virtio serial port by name. There is no udev to create a link with its name. User-mode
// Linux has a terminal instead, which the kernel's command line names.
func openPort(name string) (*os.File, error) {
	if terminal, err := kernelOption("lab.port"); err != nil || terminal != "" {
		return openRaw("/dev/"+terminal, err)
	}
	names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return nil, err
	}
	for _, path := range names {
		if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(text)) == name {
			return os.OpenFile("/dev/"+filepath.Base(filepath.Dir(path)), os.O_RDWR, 0)
		}
	}
	return nil, fmt.Errorf("no serial port %s", name)
}

func (a *agent) serve(stdin *io.PipeReader) error {
	if err := a.sender.Send(wire.Ready, nil); err != nil {
		return err
	}
	code := a.run(stdin)
	stdin.Close() // a blocked write in receive fails, and it reads the remaining frames
	if a.job.Output {
		if err := sendTree(a.sender.Stream(wire.Output), outputDir); err != nil {
			fmt.Fprintln(a.sender.Stream(wire.Stderr), "nfslab: files of /out:", err)
		}
	}
	if err := a.sender.Send(wire.Exit, []byte(strconv.Itoa(code))); err != nil {
		return err
	}
	<-a.bye // bytes accepted by the port may not have left the machine yet
	return nil
}

func (a *agent) run(stdin io.Reader) int {
	cmd := exec.Command(a.job.Command[0], a.job.Command[1:]...)
	cmd.Dir, cmd.Env = a.job.Dir, append(os.Environ(), a.job.Env...)
	if a.job.Terminal {
		return a.runOnTerminal(cmd)
	}
	// Background processes of the command must not keep the machine up.
	const patience = 2 * time.Second
	cmd.WaitDelay = patience
	cmd.Stdout, cmd.Stderr = a.sender.Stream(wire.Stdout), a.sender.Stream(wire.Stderr)
	feed := func() {}
	if a.job.Stdin {
		pipe, err := cmd.StdinPipe() // unlike with cmd.Stdin, Wait does not wait for unread input
		if err != nil {
			return a.exitCode(cmd, err)
		}
		feed = func() {
			_, _ = io.Copy(pipe, stdin) // fails when the command stops reading
			pipe.Close()
			_, _ = io.Copy(io.Discard, stdin)
		}
	}
	if err := cmd.Start(); err != nil {
		return a.exitCode(cmd, err)
	}
	go feed()
	return a.exitCode(cmd, cmd.Wait())
}

// exitCode follows the shell: 126 and 127 for commands that cannot be run or found, 128+n for signals.
func (a *agent) exitCode(cmd *exec.Cmd, err error) int {
	if cmd.ProcessState != nil {
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			return 128 + int(status.Signal())
		}
		return status.ExitStatus()
	}
	fmt.Fprintln(a.sender.Stream(wire.Stderr), "nfslab:", err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return 127
	}
	return 126
}

// receive handles the launcher's frames until the port fails.
func (a *agent) receive(port io.Reader, input *io.PipeWriter) {
	for {
		kind, payload, err := wire.Receive(port)
		switch {
		case err != nil:
			input.CloseWithError(err)
			return
		case kind == wire.Bye:
			close(a.bye)
			return
		case kind == wire.Resize:
			resize(string(payload))
		case kind == wire.Stdin && len(payload) == 0:
			input.Close()
		case kind == wire.Stdin:
			_, _ = input.Write(payload) // fails once the command has ended, and then the input is not needed
		}
	}
}

// beat sends heartbeats, so that the launcher can detect a hang.
func (a *agent) beat() {
	const interval = 2 * time.Second
	for range time.Tick(interval) {
		if a.sender.Send(wire.Alive, nil) != nil {
			return
		}
	}
}
