package shareddir

import (
	"io/fs"
	"os"

	"github.com/multilock/go/multilock/vfs"
)

// Outside says what to believe of a directory that is no base directory: one on the way
// to a file that a user named, and perhaps one that others can write to. The rule is that
// of base directories, but for root: members of a group may write state in the group's
// directory, and must not decide what root runs, or which files root writes to.
type Outside struct {
	circle *circle
	info   vfs.Info
}

// Look looks at a directory.
func Look(dir vfs.Dir) (Outside, error) {
	info, err := dir.StatCached()
	c := newCircle(Trust{}, info, func() (uint32, error) { return ownerHere(dir) })
	c.declared = c.declared && os.Geteuid() != 0
	return Outside{c, info}, err
}

// Leads says why an entry of the directory may not be what the user meant: others could
// have put it there. In one like /tmp they cannot replace what is root's or the user's own.
func (o Outside) Leads(entry vfs.Info) error {
	err := o.Exclusive()
	if err == nil || o.info.Mode&fs.ModeSticky != 0 && o.circle.knows(o.info.UID) && o.circle.knows(entry.UID) {
		return nil
	}
	return err
}

// Exclusive says that nobody can have put anything into the directory who is not
// trusted, so that what is there is what the user meant; or why that is not so.
func (o Outside) Exclusive() error { return o.circle.admit(o.info, false) }

// Obey says why the content of a file is not to be acted on: somebody who is not trusted
// owns it, or may write to it. What is written to a device does not stay there.
func (o Outside) Obey(info vfs.Info) error {
	device := info.Mode&fs.ModeDevice != 0
	info.Mode = info.Mode.Perm()
	if !device {
		info.Mode |= fs.ModeDir // as for a directory, which others would fill
	}
	return o.circle.admit(info, false)
}

// Admit says why a file in the directory is not written to: somebody may have put it
// there who is not trusted. It may be a pipe, or a device.
func (o Outside) Admit(info vfs.Info) error {
	info.Mode &^= fs.ModeNamedPipe | fs.ModeIrregular
	return o.circle.admit(info, true)
}
