package command

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
)

// callingShell finds the shell that runs the script, given our parent. In token=$(cd /x && multilock acquire)
// the parent is a fork of that shell, which ends when we end, and a lock held for its lifetime would be
// released before the script's next line.
//
// A process that was forked and has not called exec shares its parent's stack address (field 28 of
// proc_pid_stat(5), which exec randomizes) and command line. For processes of other users the kernel shows 0;
// then callingShell returns the parent.
func callingShell(parent int) int {
	for {
		child, ok := readFork(parent)
		if !ok {
			return parent
		}
		above, ok := readFork(child.parent)
		if !ok || above.stack != child.stack || !bytes.Equal(above.command, child.command) {
			return parent
		}
		parent = child.parent
	}
}

// fork has what distinguishes a forked process from an executed program.
type fork struct {
	parent  int
	stack   uint64
	command []byte
}

func readFork(pid int) (fork, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return fork{}, false
	}
	// The name, field 2, may contain anything; it ends at the last parenthesis.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 26 {
		return fork{}, false
	}
	parent, badParent := strconv.Atoi(string(fields[1]))
	stack, badStack := strconv.ParseUint(string(fields[25]), 10, 64)
	command, unreadable := os.ReadFile(dir + "/cmdline")
	ok := badParent == nil && badStack == nil && unreadable == nil && stack != 0 && parent > 0
	return fork{parent, stack, command}, ok
}

// isWrapper reports whether a process only runs our command and ends with it, as timeout or sudo do: its
// arguments contain our command line as separate words. It also knows programs that take a command line as
// one word, and start a shell that our program has replaced.
func isWrapper(pid int) (name string, yes bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	line, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return "", false
	}
	comm, _ := os.ReadFile(dir + "/comm")
	name = strings.TrimSpace(string(comm))
	if slices.Contains([]string{"su", "runuser", "sudo", "doas", "sshd", "sshd-session", "dropbear"}, name) {
		return name, true
	}
	words, ours := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"), os.Args[:min(len(os.Args), 2)]
	for i := 1; i+len(ours) <= len(words); i++ {
		if slices.Equal(words[i:i+len(ours)], ours) {
			return name, true
		}
	}
	return name, false
}
