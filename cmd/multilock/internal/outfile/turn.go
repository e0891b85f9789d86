//go:build !windows

package outfile

import (
	"os"
	"slices"
	"strconv"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/vfs"
)

// Begin begins the file at path anew. The one that is there becomes path.1, what was that
// becomes path.2, and so on, until there are keep files with the new one; what is left over
// is removed. What is no file, such as a device or a pipe, is written to where it is.
func Begin(path string, keep int) (*os.File, error) {
	dir, name, err := find(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	if err := dir.turn(name, keep); err != nil {
		return nil, err
	}
	return dir.append(name)
}

// turn makes room for a new file. Nothing is moved of which append would say that it is
// not ours.
func (d Dir) turn(name string, keep int) error {
	info, err := d.StatName(name)
	switch {
	case vfs.Gone(err):
		return nil
	case err != nil:
		return err
	case !shareddir.IsRegular(info):
		return nil
	}
	if why := d.foreign(info); why != nil {
		return d.refuse(name, "%w; remove it, or name a file where nobody else can write", why)
	}
	for i := keep - 1; i > 0; i-- {
		if err := d.Rename(numbered(name, i-1), d.Dir, numbered(name, i)); err != nil && !vfs.Gone(err) {
			return err
		}
	}
	for i := max(keep, 1); err == nil; i++ { // of a time when more were kept
		err = d.Unlink(numbered(name, i))
	}
	if keep == 1 && vfs.Gone(err) {
		err = d.Unlink(name)
	}
	if vfs.Gone(err) {
		return nil
	}
	return err
}

func numbered(name string, i int) string {
	if i == 0 {
		return name
	}
	return name + "." + strconv.Itoa(i)
}

// Make makes the file name, which must not exist, for writing.
func (d Dir) Make(name string) (*os.File, error) {
	return openAt(d.Dir, name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND|noFollow, fileMode)
}

// Keep removes all files of a kind but the last ones by their names. What somebody else may
// have put there does not count, and stays.
func (d Dir) Keep(last int, ofKind func(name string) bool) error {
	var names []string
	err := d.ListFiles(func(name string) bool {
		if ofKind(name) {
			names = append(names, name)
		}
		return true
	})
	names = slices.DeleteFunc(names, func(name string) bool {
		info, err := d.StatName(name)
		return err != nil || !shareddir.IsRegular(info) || d.foreign(info) != nil
	})
	slices.Sort(names)
	for _, name := range names[:max(len(names)-last, 0)] {
		if gone := d.Unlink(name); gone != nil && !vfs.Gone(gone) {
			return gone
		}
	}
	return err
}
