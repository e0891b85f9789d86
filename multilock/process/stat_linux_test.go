package process

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// statLine makes up a line as the kernel does: a name is in it as it stands.
func statLine(pid int, name string, state byte, group int, start uint64) []byte {
	return fmt.Appendf(nil, "%d (%s) %c 1 %d 9248 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 %d 3133440 383 18446744073709551615\n",
		pid, name, state, group, start)
}

func TestStatOfOurselves(t *testing.T) {
	var buf statBuffer
	own, err := readStat("/proc/self/stat", &buf)
	require.NoError(t, err)
	require.False(t, own.dead())
	comm, err := os.ReadFile("/proc/self/comm")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSuffix(string(comm), "\n"), string(own.name))
	require.NotZero(t, own.start)
}

func TestStatThatIsMalformed(t *testing.T) {
	whole := string(statLine(7, "sh", 'S', 7, 42))
	for _, line := range []string{
		"", "(", ")", ")(", "()", "7 (sh)", "7 (sh) ", "7 (sh) S", "7 sh S 1 7",
		whole[:strings.Index(whole, "42")], strings.Replace(whole, "42", "-42", 1),
		"7 (sh)  1 7", "7 (sh) SS 1 7", strings.Replace(whole, "S 1", " 1", 1), strings.Replace(whole, "S 1", "SS 1", 1),
		strings.Replace(whole, "S 1 7", "S 1 seven", 1), strings.Replace(whole, "42", "99999999999999999999", 1),
	} {
		_, err := parseStat([]byte(line))
		require.ErrorIs(t, err, errMalformed, "%q", line)
	}
}

func TestStatOfNobody(t *testing.T) {
	var buf statBuffer
	_, err := readStat("/proc/0/stat", &buf)
	require.True(t, vanished(err), "%v", err)
	require.True(t, vanished(unix.ESRCH), "it ended after its file was opened")
	require.False(t, vanished(unix.EACCES), "it is somebody else's, and hidden")
	require.False(t, vanished(errMalformed))
}

// FuzzStat checks that no name, whatever it holds, shifts a field, and that no
// line makes the parser panic.
func FuzzStat(f *testing.F) {
	for _, name := range []string{
		"sh", "", " ", ")", "(", ") (", "a) S 1 2 3", "x\n7 (y) Z 1 7", "kworker/0:1-events", "((sd-pam))", "\xff\xfe",
		string(statLine(7, "inner", 'Z', 8, 9)),
	} {
		f.Add([]byte(name), 4711, uint64(98566))
	}
	f.Add([]byte("reaped"), -1, uint64(0))
	f.Fuzz(func(t *testing.T, name []byte, group int, start uint64) {
		_, _ = parseStat(name)
		got, err := parseStat(statLine(4711, string(name), 'S', group, start))
		require.NoError(t, err)
		require.Equal(t, string(name), string(got.name))
		require.Equal(t, byte('S'), got.state)
		require.Equal(t, group, got.group)
		require.Equal(t, start, got.start)
	})
}

func TestHidepidOptions(t *testing.T) {
	for options, want := range map[string]bool{
		"rw,relatime":                     false,
		"rw,hidepid=0":                    false,
		"rw,hidepid=off":                  false,
		"rw,hidepid=1":                    true,
		"rw,relatime,hidepid=invisible":   true,
		"rw,gid=4,hidepid=2":              true,
		"rw,hidepid=ptraceable,subset=id": true,
	} {
		require.Equal(t, want, hidesPIDs(options), options)
	}
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

func TestProcIsOurs(t *testing.T) {
	require.True(t, procIsOurs())
}

func TestMountsThatHideProcesses(t *testing.T) {
	const quiet = "proc /proc proc rw,nosuid 0 0\n"
	for mounts, want := range map[string]bool{
		"":                                       false,
		quiet:                                    false,
		"proc /proc proc rw,hidepid=2 0 0\n":     true,
		"proc /proc proc rw,hidepid=invisible\n": true,
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

func TestThreadsOfTheKernel(t *testing.T) {
	line := statLine(2, "kthreadd", 'S', 0, 42)
	found, err := parseStat(line)
	require.NoError(t, err)
	require.False(t, found.kernel)
	flags := bytes.Replace(line, []byte(" 4194304 "), []byte(" 2129984 "), 1) // PF_KTHREAD|PF_NOFREEZE, as kthreadd has it
	found, err = parseStat(flags)
	require.NoError(t, err)
	require.True(t, found.kernel)
	found, err = parseStat(bytes.Replace(line, []byte(" 4194304 "), []byte(" 4194305 "), 1))
	require.NoError(t, err)
	require.False(t, found.kernel, "it runs a virtual processor, and is nobody's but its user's")
	_, err = parseStat(bytes.Replace(line, []byte(" 4194304 "), []byte(" many "), 1))
	require.ErrorIs(t, err, errMalformed)
}
