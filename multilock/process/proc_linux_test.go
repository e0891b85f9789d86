package process

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

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
