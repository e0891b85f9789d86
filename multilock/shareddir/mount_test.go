package shareddir

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// The options are those of /proc/self/mountinfo on Linux 6.1.
// Rule: none (doctor)
func TestFindingsOfAMount(t *testing.T) {
	t.Parallel()
	const nfs = "rw,relatime,vers=4.2,rsize=262144,wsize=262144,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=10.0.0.2,local_lock=none,addr=10.0.0.1"
	for name, c := range map[string]struct {
		kind, options string
		text          string   // of the first finding
		others        []string // each is the severity and a part of the text
	}{
		"NFS as it should be": {"nfs4", nfs, "NFS 4.2 at /shared, from server:/export (hard,proto=tcp,timeo=600,retrans=2,local_lock=none)",
			[]string{"ok: exports it with sync"}},
		"soft": {"nfs4", strings.Replace(nfs, "hard", "soft", 1), "soft,proto=tcp", []string{"ok: exports", "warning: this is a soft mount"}},
		"softerr, nocto": {"nfs4", strings.Replace(nfs, "hard", "softerr,nocto", 1), "softerr,nocto",
			[]string{"ok: exports", "warning: this is a soft mount", "warning: with nocto"}},
		"noac, version 3": {"nfs", "rw,vers=3,acregmin=0,acregmax=0,acdirmin=0,acdirmax=0,hard,noac,nolock,local_lock=all", "NFS 3 at /shared, from server:/export (acregmin=0,acregmax=0,acdirmin=0,acdirmax=0,hard,noac,nolock,local_lock=all",
			[]string{"ok: exports", "ok: caches are off"}},
		"lookupcache=none":               {"nfs4", nfs + ",lookupcache=none", "lookupcache=none", []string{"ok: exports", "ok: caches are off"}},
		"not NFS":                        {"ext4", "rw,relatime,errors=remount-ro", "ext4 at /shared, from server:/export", nil},
		"soft is no word of NFS's alone": {"fuse.sshfs", "ro,soft,user_id=0", "fuse.sshfs at /shared, from server:/export (ro,soft)", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := mount{point: "/shared", kind: c.kind, from: "server:/export", options: strings.Split(c.options, ",")}.findings()
			require.Equal(t, source.SeverityFine, found[0].Severity)
			require.Contains(t, found[0].Text, c.text)
			require.Len(t, found, 1+len(c.others))
			for i, want := range c.others {
				require.Equal(t, want[:strings.Index(want, ":")], string(found[i+1].Severity))
				require.Contains(t, found[i+1].Text, want[strings.Index(want, ":")+2:])
				require.NotEmpty(t, found[i+1].Advice)
			}
		})
	}
}

// All FUSE filesystems have one number: the mount says what it is, and where it comes from.
// Rule: fs-test
func TestMarksOfMounts(t *testing.T) {
	fuse := vfs.FileSystem{Type: "65735546"}
	host := process.Identity{Host: "a", Machine: "m", Boot: "b"}
	sshfs := mount{kind: "fuse.sshfs", from: "server:/export"}
	usual := markOf(fuse, sshfs, host)
	require.Regexp(t, `^fs-fuse\.sshfs-[0-9a-f]{12}\.refuses$`, usual.of(Traits{}))
	require.Equal(t, usual, markOf(fuse, mount{kind: sshfs.kind, from: sshfs.from, options: []string{"ro"}}, host))
	nfs := mount{kind: "nfs4", from: "server:/export"}
	require.Equal(t, markOf(fuse, nfs, host), markOf(fuse, mount{point: "/elsewhere", kind: nfs.kind, from: nfs.from}, host))
	require.Equal(t, usual, markOf(fuse, sshfs, process.Identity{Host: "renamed", Machine: "m", Boot: "rebooted", PID: 7}))

	container := process.Identity{Host: "2f1c", Boot: "b"}
	for what, other := range map[string]markName{
		"subtype":   markOf(fuse, mount{kind: "fuse.cryfs", from: sshfs.from}, host),
		"mount":     markOf(fuse, mount{point: "/elsewhere", kind: sshfs.kind, from: sshfs.from}, host), // a client of its own
		"source":    markOf(fuse, mount{kind: sshfs.kind, from: "other:/export"}, host),
		"type":      markOf(vfs.FileSystem{Type: "6969"}, sshfs, host),
		"machine":   markOf(fuse, sshfs, process.Identity{Host: "a", Machine: "n", Boot: "b"}),
		"container": markOf(fuse, sshfs, container),
	} {
		require.NotEqual(t, usual, other, what)
	}
	require.Equal(t, markOf(fuse, sshfs, container), markOf(fuse, sshfs, process.Identity{Host: "77aa", Boot: "b"}), "all containers of one boot")
	require.Regexp(t, `^fs-fuse\.a_b_\.\._-[0-9a-f]{12}$`, markOf(fuse, mount{kind: "fuse.a/b\n../"}, host).place)
	require.Regexp(t, `^fs-65735546-[0-9a-f]{12}$`, markOf(fuse, mount{}, host).place, "where the table of mounts cannot be read")
}
