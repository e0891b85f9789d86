//go:build linux

package vm

import (
	"os/exec"
	"strconv"
	"syscall"
)

// program converts an emulator's command into one for user-mode Linux, a kernel that runs as a program. Its
// processes run on this machine's processor, and only their system calls are intercepted. The descriptors
// are the same: 3 is the control port, which becomes tty1, 4 the console, which becomes tty0, and 5 the
// root filesystem; the user's terminal is tty2.
func program(config Config, emulator *exec.Cmd, scratch string) *exec.Cmd {
	args := []string{
		"mem=" + strconv.Itoa(config.MemoryMB) + "M", "initrd=/proc/self/fd/5", "uml_dir=" + scratch + "/", "umid=lab",
		"con=null", "con0=null,fd:4", "con1=fd:3", "quiet", "lab.port=tty1",
		"root=", // empty: by default it sets 98:0, and the root is then a ramfs, which cannot be exported
	}
	if config.Terminal {
		args = append(args, "con2=fd:0,fd:1", "lab.terminal=tty2")
	}
	cmd := exec.Command(config.Kernel, args...)
	cmd.ExtraFiles, cmd.Stdin, cmd.Stdout, cmd.Stderr = emulator.ExtraFiles, emulator.Stdin, emulator.Stdout, emulator.Stderr
	cmd.SysProcAttr = emulator.SysProcAttr
	confine(cmd.SysProcAttr)
	return cmd
}

// confine makes a process the first of a PID namespace: when it ends, so do the processes of the machine,
// which the kernel would leave behind if it is killed.
func confine(attr *syscall.SysProcAttr) {
	attr.Cloneflags = syscall.CLONE_NEWPID
}
