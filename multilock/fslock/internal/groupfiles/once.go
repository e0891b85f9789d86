package groupfiles

import (
	"fmt"

	"github.com/multilock/go/multilock/vfs"
)

// Once opens the files of a directory, each file once: a hard link costs its creator nothing, but would
// make the reader read the whole file for each name. A file with another name in another directory, such as
// a backup by cp -al, is read.
type Once map[inode]string

// inode is a file that has several names. Its value in Once is the name that it was opened by.
type inode struct{ device, number uint64 }

// SameFileError reports a further name of a file.
type SameFileError struct{ other string }

func (e *SameFileError) Error() string {
	return fmt.Sprintf("it is the same file as %s (a hard link), which is read once; remove one of them", e.other)
}

// Open opens a file, and returns its size. The error is a *SameFileError for a further name of a file.
func (once Once) Open(dir vfs.Dir, name string) (vfs.File, vfs.Info, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, vfs.Info{}, err
	}
	info, err := f.StatCached()
	if err == nil && info.Links > 1 {
		err = once.admit(name, info)
	}
	if err != nil {
		_ = f.Close() // nothing was read
		return nil, info, err
	}
	return f, info, nil
}

func (once Once) admit(name string, info vfs.Info) error {
	file := inode{info.Device, info.Inode}
	if other, known := once[file]; known && other != name {
		return &SameFileError{other}
	}
	once[file] = name
	return nil
}
