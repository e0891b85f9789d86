//go:build !linux

package shareddir

import (
	"errors"

	"github.com/multilock/go/multilock/vfs"
)

func kindOf(dir vfs.Dir, _ vfs.Info) (vfs.FileSystem, error) { return dir.FileSystem() }

// mountOf is for Linux; elsewhere "mount" tells.
func mountOf(vfs.Dir) (mount, error) {
	return mount{}, errors.New("multilock does not read the table of mounts on this system; see mount(8) for hard or soft")
}
