package command

import (
	"bytes"
	"os"
	"strconv"
)

// callingShell finds the shell whose script is running, given our parent. In
// token=$(cd /x && multilock acquire) and the like that is not the parent: the
// shell has forked, the copy is at its end as soon as we are, and a lock held for
// its lifetime would be free before the script's next line.
//
// A process that was forked and has executed nothing since has the address of
// its stack in common with its parent (field 28 of proc_pid_stat(5), drawn at
// random by every exec), and its command line. The kernel shows a 0 for processes
// of others; then the parent it is.
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

// fork is what tells a copy of a process from a program that was executed.
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
	// The name, field 2, may contain anything; it ends with the last parenthesis.
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
