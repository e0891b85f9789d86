package fslock

import "github.com/multilock/go/multilock/vfs"

// fileIdentity tells the lock file that a contender wrote from any other that may get its
// name, as far as the file system tells files apart.
type fileIdentity struct {
	handle        vfs.Handle // on NFS, if there is one
	device, inode uint64     // zero where they are not known, or prove nothing
}

// identityOf asks no server. What it does not learn is not compared.
func (s *Source) identityOf(f vfs.File) (id fileIdentity) {
	if s.base.Kind.NFS {
		id.handle, _ = f.Handle()
	}
	if !s.base.InodesCount() {
		return id
	}
	if info, err := f.StatCached(); err == nil {
		id.device, id.inode = info.Device, info.Inode
	}
	return id
}

// isAnother says that info is that of another file.
func (id fileIdentity) isAnother(info vfs.Info) bool {
	return id.inode != 0 && (info.Inode != id.inode || info.Device != id.device)
}
