//go:build !windows

package outfile

import (
	"os"
	"slices"
	"strconv"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/vfs"
)

// Begin starts a new file at path. The existing file becomes path.1, path.1 becomes path.2, and so on,
// so that keep files exist with the new one; older ones are removed. A pipe or device stays, and
// is written to.
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

// turn makes room for a new file. It moves no file that append would reject.
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
	if why := d.untrustedFile(info); why != nil {
		return d.refuse(name, "%w; remove it, or name a file in a directory that no other user can write to", why)
	}
	for i := keep - 1; i > 0; i-- {
		if err := d.Rename(numbered(name, i-1), d.Dir, numbered(name, i)); err != nil && !vfs.Gone(err) {
			return err
		}
	}
	for i := max(keep, 1); err == nil; i++ { // left from a larger keep
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

// Make creates the file name, which must not exist, for writing.
func (d Dir) Make(name string) (*os.File, error) {
	return openAt(d.Dir, name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND|noFollow, fileMode)
}

// Keep removes all files of a kind except the last ones in the order of their names. It neither counts
// nor removes files that an untrusted user may have created.
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
		return err != nil || !shareddir.IsRegular(info) || d.untrustedFile(info) != nil
	})
	slices.Sort(names)
	for _, name := range names[:max(len(names)-last, 0)] {
		if gone := d.Unlink(name); gone != nil && !vfs.Gone(gone) {
			return gone
		}
	}
	return err
}
