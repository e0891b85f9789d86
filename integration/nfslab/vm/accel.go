//go:build linux

package vm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Accel is the way in which the machine's processor is provided.
type Accel string

// The two ways that qemu offers on Linux, and one without qemu.
const (
	KVM Accel = "kvm" // the host's processor
	UML Accel = "uml" // the host's processor, and a kernel that runs as a program
	TCG Accel = "tcg" // emulation, some ten times slower
)

// ParseAccel returns the Accel with this name.
func ParseAccel(name string) (Accel, error) {
	switch accel := Accel(name); accel {
	case KVM, UML, TCG:
		return accel, nil
	}
	return "", fmt.Errorf("%q is none of kvm, uml and tcg", name)
}

func (a Accel) option() string {
	if a == TCG {
		return "tcg,thread=multi"
	}
	return string(a)
}

func (a Accel) cpu() string {
	if a == KVM {
		return "host"
	}
	return "max"
}

// BestAccel returns KVM if a kernel really runs on it here, and TCG otherwise. UML must be requested: its
// clock ticks every 10 ms, and it is fast enough for several changes within a tick, which its NFS clients
// cannot distinguish. It is not enough that /dev/kvm can be opened and runs a boot sector: inside some
// virtual machines a Linux kernel then hangs. So BestAccel boots the kernel without a root filesystem and
// waits for its panic. The result is stored in dir until the host reboots.
func BestAccel(ctx context.Context, dir, kernel string) (Accel, error) {
	bootID, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	assessment := filepath.Join(dir, "accel-"+strings.TrimSpace(string(bootID)))
	switch known, _ := os.ReadFile(assessment); Accel(known) {
	case KVM, TCG:
		return Accel(known), nil
	}
	accel := TCG
	if canOpen("/dev/kvm") && tryKVM(ctx, kernel) {
		accel = KVM
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return accel, replaceFile(assessment, string(accel))
}

func tryKVM(ctx context.Context, kernel string) bool {
	const patience = 10 * time.Second // on KVM, a kernel panics within a second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	args := append(base(KVM, 512, 1), "-kernel", kernel, "-append", "console=ttyS0 quiet panic=-1", "-serial", "stdio")
	cmd := exec.CommandContext(ctx, Program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// A processor that resets instead of running the kernel also ends the machine, but without output.
	console, err := cmd.Output()
	return err == nil && bytes.Contains(console, []byte("Kernel panic"))
}

// replaceFile writes a file atomically: readers see the old content or the new one.
func replaceFile(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "accel-tmp-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after a successful rename
	if _, err := f.WriteString(content); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func canOpen(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}
