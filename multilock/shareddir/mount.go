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
// docs/nfs.md.
func (m mount) findings() []source.Finding {
	found := []source.Finding{{Subject: "mount", Severity: source.SeverityFine, Text: m.describe()}}
	if m.isNFS() {
		return append(found, m.nfsFindings()...)
	}
	if m.row() == "" {
		found = append(found, source.Finding{
			Subject: "mount", Severity: source.SeverityWarning, Text: "nobody has tried locks on the type " + m.kind + " for multilock's table of filesystems",
			Advice: "see: multilock help filesystems; let doctor --join try it from two hosts at least",
		})
	}
	return found
}

// row names the row that the mount is on in the table of docs/filesystems.md, "" if nobody has
// tried it. bindfs has no name of its own, and MooseFS one in its source alone.
func (m mount) row() string {
	switch kind := strings.TrimPrefix(m.kind, "fuse."); kind {
	case "nfs", "nfs4":
		return "NFS"
	case "tmpfs", "ramfs", "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay":
		return "ext4, XFS, Btrfs, tmpfs, overlay"
	case "cifs", "smb3":
		return "SMB"
	case "9p":
		return "9p"
	case "vfat", "msdos", "exfat", "fuseblk":
		return "FAT, exFAT"
	case "glusterfs":
		return "GlusterFS"
	case "ceph-fuse":
		return "CephFS"
	case "gocryptfs", "fuse-overlayfs", "unionfs-fuse", "sshfs", "mergerfs", "encfs", "cryfs":
		return kind
	case "fuse":
		if strings.HasPrefix(m.from, moosePrefix) {
			return "MooseFS"
		}
		return "bindfs"
	}
	return ""
}

// moosePrefix is how the sources of MooseFS begin; its type is plain fuse.
const moosePrefix = "mfs#"

func (m mount) describe() string {
	text := fmt.Sprintf("%s, type %s, from %s", m.point, m.kind, m.from)
	if version := m.value("vers"); m.isNFS() && version != "" {
		text += ", NFS " + version
	}
	if told := m.telling(); len(told) > 0 {
		text += ": " + strings.Join(told, ",")
	}
	if row := m.row(); row != "" {
		text += fmt.Sprintf("; see the row %q of: multilock help filesystems", row)
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
		Subject: "export", Severity: source.SeverityFine, Text: "whether the server exports it with sync cannot be seen from here",
		Advice: "look on the server (exportfs -v): with async, a crash of the server can take away a lock that is held",
	}}
	if m.has("soft", "softerr") {
		found = append(found, source.Finding{
			Subject: "mount", Severity: source.SeverityWarning, Text: "it is a soft mount: a request can fail while the server is away, and be carried out later",
			Advice: "mount it with hard, which is the default; a lock can be lost while it is held otherwise, which is noticed and not prevented",
		})
	}
	if m.has("nocto") {
		found = append(found, source.Finding{
			Subject: "mount", Severity: source.SeverityWarning, Text: "with nocto a file that another host has changed may be read as it was",
			Advice: "mount it without nocto",
		})
	}
	if m.has("noac") || m.value("lookupcache") == "none" || m.value("acdirmax") == "0" {
		found = append(found, source.Finding{
			Subject: "mount", Severity: source.SeverityFine, Text: "caches are turned off (noac, actimeo=0 or lookupcache=none), which costs requests and gains nothing here",
			Advice: "leave the cache times at their defaults, unless something else needs this",
		})
	}
	return found
}
