package shareddir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/multilock/go/multilock/source"
)

// mount says where a directory comes from.
type mount struct {
	point, kind, from string
	options           []string // those of the mount and those of its filesystem
	life              string   // tells it from one that was here before; "" if nothing does
}

// has says whether the mount has one of the options.
func (m mount) has(options ...string) bool {
	return slices.ContainsFunc(options, func(o string) bool { return slices.Contains(m.options, o) })
}

// value is what stands behind "name=" in the options.
func (m mount) value(name string) string {
	for _, option := range m.options {
		if value, ok := strings.CutPrefix(option, name+"="); ok {
			return value
		}
	}
	return ""
}

func (m mount) isNFS() bool { return m.kind == "nfs" || m.kind == "nfs4" }

// findings judges a mount. What is said of NFS was shown in integration/nfs; see
// docs/nfs-evidence.md.
func (m mount) findings() []source.Finding {
	found := []source.Finding{source.Fine("mount", m.describe())}
	if m.isNFS() {
		return append(found, m.nfsFindings()...)
	}
	if !slices.Contains(tested, strings.TrimPrefix(m.kind, "fuse.")) {
		found = append(found, source.Warning("mount", "locks were never tested on filesystems of type "+m.kind,
			"test it with doctor --join from two or more hosts; see: multilock help filesystems"))
	}
	return found
}

// tested are the types beside NFS in the table of docs/internals/filesystems.md. bindfs and MooseFS are plain "fuse".
var tested = []string{
	"tmpfs", "ramfs", "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay", "cifs", "smb3", "9p", "vfat", "msdos", "exfat", "fuseblk",
	"glusterfs", "ceph-fuse", "gocryptfs", "fuse-overlayfs", "unionfs-fuse", "sshfs", "mergerfs", "encfs", "cryfs", "fuse",
}

func (m mount) describe() string {
	kind := m.kind
	if version := m.value("vers"); m.isNFS() && version != "" {
		kind = "NFS " + version
	}
	text := fmt.Sprintf("%s at %s, from %s", kind, m.point, m.from)
	if told := m.telling(); len(told) > 0 {
		text += " (" + strings.Join(told, ",") + ")"
	}
	return text
}

// telling are the options that people ask about; the default cache times are not
// among them, because the kernel does not list those.
func (m mount) telling() []string {
	names := []string{
		"ro", "hard", "soft", "softerr", "softreval", "proto", "timeo", "retrans", "noac", "actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax",
		"lookupcache", "nocto", "nolock", "local_lock", "nosharecache", "cache",
	}
	return slices.DeleteFunc(slices.Clone(m.options), func(option string) bool {
		name, _, _ := strings.Cut(option, "=")
		return !slices.Contains(names, name)
	})
}

func (m mount) nfsFindings() []source.Finding {
	found := []source.Finding{{
		Subject: "export", Severity: source.SeverityFine, Text: "whether the server exports it with sync cannot be seen on this host",
		Advice: "check on the server (exportfs -v) that the export is sync: with async, a server crash can lose a lock that is held",
	}}
	if m.has("soft", "softerr") {
		found = append(found, source.Warning("mount", "this is a soft mount: while the server is down, a request can fail and still be carried out later",
			"mount with hard (the default); with soft, a holder can lose its lock"))
	}
	if m.has("nocto") {
		found = append(found, source.Warning("mount", "with nocto, a file that another host has changed may be read as it was before",
			"mount without nocto"))
	}
	if m.has("noac") || m.value("lookupcache") == "none" || m.value("acdirmax") == "0" {
		found = append(found, source.Finding{
			Subject: "mount", Severity: source.SeverityFine, Text: "caches are off (noac, actimeo=0 or lookupcache=none): more requests, and no safer locks",
			Advice: "use the default cache times, unless something else needs this",
		})
	}
	return found
}
