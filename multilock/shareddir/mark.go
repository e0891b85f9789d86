package shareddir

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/multilock/go/multilock/vfs"
)

// Files in .multilock that say something about the base directory.
const (
	sharedMark  = "shared"   // see MarkShared
	oneHostMark = "one-host" // the warning of OneHost was printed
)

const sharedText = `This file says that hosts share the directory in which .multilock is. "multilock doctor --mark" wrote
it, and "multilock run --require-shared" needs it: a directory on which nothing is mounted lacks it.
`

// SharedMarkPath is the path of the marker below the base directory, for messages.
const SharedMarkPath = PrivateDir + "/" + sharedMark

// MarkShared writes the marker file of a directory that hosts share.
func (b *Base) MarkShared() error { return b.mark(sharedMark, sharedText) }

// IsMarkedShared says whether the marker file is there.
func (b *Base) IsMarkedShared() (bool, error) { return b.isMarked(sharedMark) }

// mark writes a marker file, unless it is there.
func (b *Base) mark(name, text string) error {
	private, err := b.Private.Use()
	if err != nil {
		return opError("use .multilock in the base directory", err)
	}
	defer b.Private.Done(private)
	f, err := private.Create(name, FileMode)
	if vfs.Is(err, syscall.EEXIST) {
		return nil
	}
	if err == nil {
		_, err = f.Write([]byte(text))
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return opError("write .multilock/"+name+" in the base directory", err)
	}
	return nil
}

func (b *Base) isMarked(name string) (bool, error) {
	private, err := b.OpenDir(PrivateDir)
	if vfs.Gone(err) {
		return false, nil
	}
	if err != nil {
		return false, opError("open .multilock in the base directory", err)
	}
	defer private.Close() //nolint:errcheck // a directory
	info, err := private.StatName(name)
	if vfs.Gone(err) {
		return false, nil
	}
	if err != nil {
		return false, opError("look for .multilock/"+name+" in the base directory", err)
	}
	return info.Mode&fs.ModeType == 0, nil
}
