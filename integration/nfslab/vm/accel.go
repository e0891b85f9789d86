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

// Accel is how the machine's processor is made.
type Accel string

// The two ways that qemu offers on Linux, and one without qemu.
const (
	KVM Accel = "kvm" // the host's processor
	UML Accel = "uml" // the host's processor, and a kernel that is one of its programs
	TCG Accel = "tcg" // emulation, some ten times slower
)

// ParseAccel returns the Accel of that name.
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

// BestAccel returns KVM if a kernel really runs on it here, else TCG. UML has to be asked for: its clock ticks every 10 ms, and
// it is fast enough for changes that its NFS clients cannot tell apart. That /dev/kvm opens and runs a boot sector proves
// little: inside some virtual machines a Linux kernel then hangs. So this boots kernel without a root file system and waits for
// its panic. The answer is kept in dir until the host boots again.
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
	const patience = 10 * time.Second // a kernel on KVM panics within one
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	args := append(base(KVM, 512, 1), "-kernel", kernel, "-append", "console=ttyS0 quiet panic=-1", "-serial", "stdio")
	cmd := exec.CommandContext(ctx, Program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// A processor that resets instead of running the kernel ends the machine too, but without a word.
	console, err := cmd.Output()
	return err == nil && bytes.Contains(console, []byte("Kernel panic"))
}

// replaceFile lets readers see all of the content or none.
func replaceFile(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "accel-tmp-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
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
