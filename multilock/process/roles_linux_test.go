package process_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/process"
)

func roles() map[string]func() error {
	return map[string]func() error{
		"sit":      sit,
		"lead":     lead,
		"hop":      hop,
		"headless": headless,
		"report":   report,
		"nobody":   judgeAsNobody,
		"hidden":   judgeBehindHidepid,
		"outer":    judgeWithOuterProc,
	}
}

// adoptOrphans makes grandchildren our own children when their parent ends, so that the tests decide when
// they are reaped.
func adoptOrphans() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

func say(message any) error {
	return json.NewEncoder(os.Stdout).Encode(message)
}

// another starts one more process of ours, in its own process group or in that of the caller. It ends when
// input ends, which the caller may share.
func another(attributes *syscall.SysProcAttr) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path)
	cmd.Env = actor.Environ("sit")
	cmd.Stdin = os.Stdin
	cmd.SysProcAttr = attributes
	return cmd, cmd.Start()
}

// moveVariable names the process group that lead moves to, if any.
const moveVariable = "MULTILOCK_PROCESS_TEST_GROUP"

// lead leaves a member of its group behind when it is killed, or moves to another group.
func lead() error {
	member, err := another(nil)
	if err != nil {
		return err
	}
	if target, err := strconv.Atoi(os.Getenv(moveVariable)); err == nil {
		if err := unix.Setpgid(0, target); err != nil {
			return err
		}
	}
	if err := say(member.Process.Pid); err != nil {
		return err
	}
	_ = member.Wait() // the test kills it
	return nil
}

// hop starts the next process of its kind and ends, as long as its input is open.
func hop() error {
	poll := []unix.PollFd{{Fd: 0}}
	_, _ = unix.Poll(poll, 0) // if it is interrupted, the result is unknown
	if poll[0].Revents&unix.POLLHUP != 0 {
		return nil
	}
	path, err := os.Executable()
	if err != nil {
		return err
	}
	next := exec.Command(path)
	next.Stdin, next.ExtraFiles = os.Stdin, []*os.File{os.NewFile(3, "life")}
	return next.Start()
}

// headless continues after its main thread has ended.
func headless() error {
	go endMainThread()
	var line []byte
	for !bytes.Contains(line, []byte(") Z ")) {
		runtime.Gosched()
		var err error
		if line, err = os.ReadFile("/proc/self/stat"); err != nil {
			return err
		}
	}
	return sit()
}

// endMainThread moves from thread to thread until it runs on the main one. Every thread on the way stays
// locked, so the search ends.
func endMainThread() {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
	go endMainThread()
	select {}
}

func report() error {
	id, err := process.Self()
	if err != nil {
		return err
	}
	if err := say(id); err != nil {
		return err
	}
	return sit()
}

// exam is what an actor in other namespaces is asked about.
type exam struct {
	Process process.Identity
	Group   process.Group
	Token   string
}

// findings are the answers.
type findings struct {
	Process, Group, Job process.Evidence
	Found               process.Identity
}

func takeExam() error {
	var asked exam
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	me, err := process.Self()
	if err != nil {
		return err
	}
	found, err := process.Find(asked.Process.PID)
	if err != nil {
		return err
	}
	return say(findings{
		Process: asked.Process.Judge(me), Group: asked.Group.Judge(me), Job: asked.Process.JudgeJob(process.JobMark{Token: asked.Token}, me), Found: found,
	})
}

const nobody = 65534

func judgeAsNobody() error {
	if err := syscall.Setgid(nobody); err != nil {
		return err
	}
	if err := syscall.Setuid(nobody); err != nil {
		return err
	}
	return takeExam()
}

// mountProc needs its own mount namespace, and keeps its mounts private.
func mountProc() error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, "hidepid=2"); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	return nil
}

func judgeBehindHidepid() error {
	if err := mountProc(); err != nil {
		return err
	}
	return judgeAsNobody()
}

// outerFindings come from a pid namespace whose /proc shows the outer one.
type outerFindings struct {
	Self, Child                       process.Identity
	SelfLife, ChildLife, Forged, Gone process.Evidence
	Group, GroupForged, GroupGone     process.Evidence
	Job                               process.Evidence
}

func judgeWithOuterProc() error {
	me, err := process.Self()
	if err != nil {
		return err
	}
	child, err := another(&syscall.SysProcAttr{Setpgid: true})
	if err != nil {
		return err
	}
	seen := outerFindings{Self: me, SelfLife: me.Judge(me), Job: me.JudgeJob(process.JobMark{Token: "t"}, me)}
	if seen.Child, err = process.Find(child.Process.Pid); err != nil {
		return err
	}
	group, err := process.FindGroup(child.Process.Pid)
	if err != nil {
		return err
	}
	forged, forgedGroup := seen.Child, group
	forged.Start, forgedGroup.Start = 1<<40, 1<<40
	seen.ChildLife, seen.Forged = seen.Child.Judge(me), forged.Judge(me)
	seen.Group, seen.GroupForged = group.Judge(me), forgedGroup.Judge(me)
	_, _ = child.Process.Kill(), child.Wait()
	seen.Gone, seen.GroupGone = seen.Child.Judge(me), group.Judge(me)
	return say(seen)
}
