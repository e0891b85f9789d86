package shareddir

import "slices"

// OneHost is the type of the filesystem if no other host sees that, so that locks on it keep
// nobody out there. It is "" if others may, or if that is not known. It asks no server.
func (b *Base) OneHost() string {
	if b.Kind.NFS {
		return ""
	}
	m, err := mountOf(b.Dir)
	switch {
	case err != nil && b.Kind.Local:
		return b.Kind.Type
	case err == nil && (b.Kind.Local || m.oneHosts()):
		return m.kind
	}
	return ""
}

// oneHosts knows the types that are one host's, beside those of the kernel that vfs knows: an overlay, whatever it lies
// over, and what lies on a disk.
func (m mount) oneHosts() bool {
	return slices.Contains([]string{"overlay", "fuse.fuse-overlayfs", "fuseblk", "vfat", "msdos", "exfat", "ntfs3"}, m.kind)
}

// overlayType is how the kernel calls overlayfs.
const overlayType = "794c7630"

// UnsaidOneHost is OneHost until SaidOneHost was called for this directory, and "" ever after. For
// later callers it is one look by name, and none where a server would be asked.
func (b *Base) UnsaidOneHost() string {
	seenByOne := b.Kind.Local || b.Kind.Type == overlayType
	if b.Kind.NFS || seenByOne && b.saidOneHost() {
		return ""
	}
	kind := b.OneHost()
	if kind == "" || !seenByOne && b.saidOneHost() {
		return ""
	}
	return kind
}

// SaidOneHost notes that a user was told of OneHost.
func (b *Base) SaidOneHost() error {
	return b.mark(oneHostMark, "A user was warned that locks in this directory are for one host only.\n")
}

func (b *Base) saidOneHost() bool {
	said, err := b.isMarked(oneHostMark)
	return said || err != nil
}
