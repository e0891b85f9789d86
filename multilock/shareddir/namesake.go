package shareddir

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"
	"syscall"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// An NFS client tells the server who it is by its host's name, unless it was given an id. Two of one name are one client to
// the server: each takes the other's opens and locks away. NFS-Ganesha answers with EIO then, and fencing numbers repeat.

// namePrefix is how the names of the marks begin that doctor leaves on NFS: the host's name and its machine, both hashed.
const namePrefix = "host-"

// nameMark is the mark of this host.
func (b *Base) nameMark() (name, mark string) {
	short := func(s string) string { sum := sha256.Sum256([]byte(s)); return fmt.Sprintf("%x", sum[:6]) }
	name = namePrefix + short(b.self.Host) + "-"
	return name, name + short(cmp.Or(b.self.Machine, b.self.Boot))
}

// examineName leaves this host's mark, and looks for that of another host of the same name. There is a finding only if
// there is one, or if that cannot be found out.
func (b *Base) examineName() []source.Finding {
	if !b.Kind.NFS {
		return nil
	}
	others, err := b.namesakes()
	switch {
	case err != nil:
		return []source.Finding{source.Warning("host", fmt.Sprintf("cannot check whether another host is also named %s: %v", b.self.Host, err),
			"let multilock write in "+b.Path()+"/"+PrivateDir)}
	case len(others) > 0:
		return []source.Finding{source.Warning("host",
			fmt.Sprintf("another host is also named %s: an NFS server may take both for one client, and fail their requests (EIO) at any time", b.self.Host),
			fmt.Sprintf("give each host its own name or NFS client ID (nfs4_unique_id), and mount again: see multilock help filesystems; if the other host is gone, or this one was reinstalled, remove the empty directory %s/%s/%s",
				b.Path(), PrivateDir, others[0]))}
	}
	return nil
}

func (b *Base) namesakes() ([]string, error) {
	private, err := b.Private.Use()
	if err != nil {
		return nil, b.StagingError(err)
	}
	defer b.Private.Done(private)
	name, own := b.nameMark()
	if err := private.Mkdir(own, DirMode); err != nil && !vfs.Is(err, syscall.EEXIST) {
		return nil, opError("note this host's name", err)
	}
	others, err := Names(private.List, func(entry string) bool { return strings.HasPrefix(entry, name) && entry != own })
	if err != nil {
		return nil, opError("look for other hosts", err)
	}
	return others, nil
}
