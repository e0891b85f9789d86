package process

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/procfs"
)

func TestMountsThatHideProcesses(t *testing.T) {
	const quiet = "proc /proc proc rw,nosuid 0 0\n"
	for mounts, want := range map[string]bool{
		"":                                 false,
		quiet:                              false,
		"proc /proc proc rw,hidepid=0\n":   false,
		"proc /proc proc rw,hidepid=off\n": false,
		"proc /proc proc rw,hidepid=1\n":   true,
		"proc /proc proc rw,hidepid=ptraceable,subset=id\n":           true,
		"proc /proc proc rw,hidepid=2 0 0\n":                          true,
		"proc /proc proc rw,hidepid=invisible\n":                      true,
		"/dev/sda1 / ext4 rw 0 0\nproc /proc proc rw,hidepid=2 0 0\n": true,
		"proc /proc proc rw,hidepid=2 0 0\n" + quiet:                  true, // below another one
		"proc /chroot/proc proc rw,hidepid=2 0 0\n":                   false,
		"tmpfs /proc tmpfs rw,hidepid=2 0 0\n":                        false,
		"proc hidepid=2 proc rw 0 0\nproc /proc hidepid=2 rw\n":       false,
		"hidepid=2\nproc /proc proc\n\nproc /proc":                    false,
	} {
		require.Equal(t, want, mountsHide(mounts), mounts)
	}
}

func TestWhatACensusCounts(t *testing.T) {
	p := newProc(t)
	p.add(3, nil) // ended since it was listed
	p.add(4, map[string]string{"stat": stat('Z', 0, 1, 100)})
	p.add(5, map[string]string{"stat": strings.Replace(runs, "1 7", "1 8", 1)}) // of another group
	quiet := census{zombies: []zombie{{4, 100}}}
	found, err := takeCensus(procfs.Dir(p.dir), 7)
	require.NoError(t, err)
	require.Equal(t, quiet, found)
	p.add(6, map[string]string{"stat": unreadable})
	quiet.hidden = true
	found, err = takeCensus(procfs.Dir(p.dir), 7)
	require.NoError(t, err)
	require.Equal(t, quiet, found)
	found.add(procfs.Dir(p.dir), 7, 3)
	require.Equal(t, quiet, found, "what was hidden stays so")
	p.add(9, map[string]string{"stat": runs})
	found, err = takeCensus(procfs.Dir(p.dir), 7)
	require.NoError(t, err)
	require.Equal(t, 9, found.alive)
	require.Equal(t, "sh", found.name)
	_, err = takeCensus("/none", 7)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCensusNeedsToBeConfirmed(t *testing.T) {
	one := census{zombies: []zombie{{7, 1}}}
	two := census{zombies: []zombie{{7, 1}, {8, 2}}}
	blind := census{zombies: []zombie{{7, 1}}, hidden: true}
	require.True(t, one.confirms(one))
	require.False(t, two.confirms(one))
	require.False(t, one.confirms(blind))
	require.False(t, blind.confirms(one))
	require.False(t, one.confirms(census{}), "the first pass")
	require.False(t, census{}.confirms(census{}), "something is there, but nobody was seen")
}

func TestInitialTimeNamespaceIsNotNamed(t *testing.T) {
	if time, err := os.Readlink("/proc/self/ns/time"); err != nil || time != initialTimeNamespace {
		t.Skip("this is another one, or a kernel without")
	}
	require.NotContains(t, namespace(), "time:")
}

// cat runs until its input is closed.
func cat(t *testing.T) (*exec.Cmd, io.Closer) {
	t.Helper()
	cmd := exec.Command("cat")
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return cmd, input
}

func pidfd(t *testing.T, pid int) *os.File {
	t.Helper()
	handle, err := openHandle(pid)
	if err != nil {
		t.Skipf("no pidfd_open here: %v", err)
	}
	t.Cleanup(func() { handle.Close() })
	return handle
}

// The poller must report the end: Wait would hide a handle that does not work, because it also polls once a
// second.
func TestHandleWakesUpAtTheEnd(t *testing.T) {
	cmd, input := cat(t)
	handle := pidfd(t, cmd.Process.Pid)
	result := make(chan error, 1)
	go func() { result <- awaitEnd(t.Context(), handle) }()
	require.NoError(t, input.Close())
	require.NoError(t, <-result)
}

func TestHandleWakesUpWithItsContext(t *testing.T) {
	cmd, _ := cat(t)
	handle := pidfd(t, cmd.Process.Pid)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- awaitEnd(ctx, handle) }()
	cancel()
	require.ErrorIs(t, <-result, os.ErrDeadlineExceeded)
}

func TestPollIsTheSame(t *testing.T) {
	me, err := Self()
	require.NoError(t, err)
	cmd, input := cat(t)
	id, err := Find(cmd.Process.Pid)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, id.poll(ctx, me), context.Canceled)

	result := make(chan error, 1)
	go func() { result <- id.poll(t.Context(), me) }()
	require.NoError(t, input.Close())
	require.NoError(t, <-result)

	id.Boot = ""
	require.ErrorContains(t, id.poll(t.Context(), me), "not known")
}

func TestHandleOfNobody(t *testing.T) {
	_, err := openHandle(1 << 30)
	require.Error(t, err)
	require.NotErrorIs(t, err, unix.EBADF)
}
