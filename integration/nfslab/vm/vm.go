//go:build linux

// Package vm runs one emulated machine: boots it, provides the ends of its serial ports, and makes sure
// that it ends.
package vm

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// Program is the emulator.
const Program = "qemu-system-x86_64"

// Config describes a machine. All fields but Terminal are required.
type Config struct {
	Kernel   string   // for UML, the program
	Initrd   *os.File // may have no name
	Accel    Accel
	CPUs     int
	MemoryMB int
	Terminal bool // connect the virtio console to this process's terminal
	// ControlPort is the name of the serial port that Machine.Control is connected to.
	ControlPort string
	// ConsoleCopy, if not nil, receives the kernel's console output.
	ConsoleCopy io.Writer
}

// Machine is a running machine.
type Machine struct {
	Control net.Conn // the control port; reads end with the machine
	Console *Console

	cmd     *exec.Cmd
	scratch string // directory to remove at the end, if not empty
	exited  chan struct{}
	err     error
}

// Start boots a machine. The machine dies with the calling thread, so that not even a SIGKILL of the caller
// leaves an emulator behind. Callers must lock their goroutine to its thread for as long as they use the
// machine.
func Start(config Config) (*Machine, error) {
	control, controlFile, err := socketPair("control")
	if err != nil {
		return nil, err
	}
	defer controlFile.Close()
	console, consoleFile, err := socketPair("console")
	if err != nil {
		control.Close()
		return nil, err
	}
	defer consoleFile.Close()

	machine := &Machine{Control: control, Console: newConsole(config.ConsoleCopy), exited: make(chan struct{})}
	if err := machine.start(config, controlFile, consoleFile); err != nil {
		return nil, errors.Join(fmt.Errorf("start machine: %w", err), control.Close(), console.Close())
	}
	go machine.watch(console)
	return machine, nil
}

func (m *Machine) start(config Config, control, console *os.File) error {
	m.cmd = command(config, control, console, m.Console)
	if config.Accel == UML {
		var err error
		if m.scratch, err = os.MkdirTemp("", "nfslab-uml-"); err != nil {
			return err
		}
		m.cmd = program(config, m.cmd, m.scratch)
	}
	err := m.cmd.Start()
	if err != nil {
		os.RemoveAll(m.scratch)
	}
	return err
}

func command(config Config, control, console *os.File, messages io.Writer) *exec.Cmd {
	cmd := exec.Command(Program, arguments(config)...)
	cmd.ExtraFiles = []*os.File{control, console, config.Initrd} // descriptors 3, 4 and 5 in the arguments
	cmd.Stderr = messages
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if config.Terminal {
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		return cmd
	}
	// Its own process group keeps the terminal's Ctrl-C from ending the machine before its output has
	// arrived.
	cmd.SysProcAttr.Setpgid = true
	return cmd
}

func arguments(config Config) []string {
	args := append(base(config.Accel, config.MemoryMB, config.CPUs),
		"-kernel", config.Kernel, "-initrd", "/dev/fd/5",
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off vdso=0",
		"-chardev", "socket,id=console,fd=4", "-serial", "chardev:console",
		"-device", "virtio-serial-pci",
		"-chardev", "socket,id=control,fd=3", "-device", "virtserialport,chardev=control,name="+config.ControlPort)
	if config.Terminal {
		args = append(args, "-chardev", "stdio,id=terminal,signal=off", "-device", "virtconsole,chardev=terminal")
	}
	return args
}

// base disables all default devices and the network; -no-reboot makes qemu exit instead of rebooting after
// a panic.
func base(accel Accel, memoryMB, cpus int) []string {
	return []string{"-accel", accel.option(), "-cpu", accel.cpu(), "-m", strconv.Itoa(memoryMB), "-smp", strconv.Itoa(cpus),
		"-nodefaults", "-no-user-config", "-display", "none", "-nic", "none", "-no-reboot"}
}

func (m *Machine) watch(console net.Conn) {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(m.Console, console) // ends with the machine
	}()
	m.err = m.cmd.Wait()
	<-drained
	os.RemoveAll(m.scratch) // "" for an emulator, which removes nothing
	console.Close()
	close(m.exited)
}

// Stop ends the machine, if it still runs, and waits for its end. It first asks the emulator to exit,
// because one that is killed leaves the terminal in raw mode.
func (m *Machine) Stop() {
	const patience = 5 * time.Second
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	select {
	case <-m.exited:
	case <-time.After(patience):
		_ = m.cmd.Process.Kill()
		<-m.exited
	}
	m.Control.Close()
}

// Wait waits for the machine to end, for at most the time within, and then stops it. It returns the
// emulator's error unless the machine powered off.
func (m *Machine) Wait(within time.Duration) error {
	select {
	case <-m.exited:
	case <-time.After(within):
	}
	m.Stop()
	return m.err
}

// socketPair returns a connection, and a file for the emulator's end of it.
func socketPair(name string) (net.Conn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%s socket: %w", name, err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name)
	defer ours.Close() // FileConn duplicates it
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("%s socket: %w", name, err)
	}
	return conn, theirs, nil
}
