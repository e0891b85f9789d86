package shareddir

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/vfs"
)

// All that is FUSE has one number: its mount tells what it is, and where it comes from.
func TestMarksOfMounts(t *testing.T) {
	fuse := vfs.FileSystem{Type: "65735546"}
	host := process.Identity{Host: "a", Machine: "m", Boot: "b"}
	sshfs := mount{kind: "fuse.sshfs", from: "server:/export"}
	usual := markOf(fuse, sshfs, host)
	require.Regexp(t, `^fs-fuse\.sshfs-[0-9a-f]{12}$`, usual)
	require.Equal(t, usual, markOf(fuse, mount{point: "/elsewhere", kind: sshfs.kind, from: sshfs.from, options: []string{"ro"}}, host))
	require.Equal(t, usual, markOf(fuse, sshfs, process.Identity{Host: "renamed", Machine: "m", Boot: "rebooted", PID: 7}))

	container := process.Identity{Host: "2f1c", Boot: "b"}
	for what, other := range map[string]string{
		"subtype":   markOf(fuse, mount{kind: "fuse.cryfs", from: sshfs.from}, host),
		"source":    markOf(fuse, mount{kind: sshfs.kind, from: "other:/export"}, host),
		"type":      markOf(vfs.FileSystem{Type: "6969"}, sshfs, host),
		"machine":   markOf(fuse, sshfs, process.Identity{Host: "a", Machine: "n", Boot: "b"}),
		"container": markOf(fuse, sshfs, container),
	} {
		require.NotEqual(t, usual, other, what)
	}
	require.Equal(t, markOf(fuse, sshfs, container), markOf(fuse, sshfs, process.Identity{Host: "77aa", Boot: "b"}), "all containers of one boot")
	require.Regexp(t, `^fs-fuse\.a_b_\.\._-[0-9a-f]{12}$`, markOf(fuse, mount{kind: "fuse.a/b\n../"}, host))
	require.Regexp(t, `^fs-65735546-[0-9a-f]{12}$`, markOf(fuse, mount{}, host), "where the table of mounts cannot be read")
}
