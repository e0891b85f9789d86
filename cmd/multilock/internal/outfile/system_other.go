//go:build !linux && !darwin && !freebsd

package outfile

import (
	"errors"
	"os"

	"github.com/multilock/go/multilock/vfs"
)

// Here no directory is opened, so that nothing can be opened in one: see vfs.OS.
const noFollow, nonBlock = 0, 0

func openAt(vfs.Dir, string, int, uint32) (*os.File, error) { return nil, errors.ErrUnsupported }
func isLink(error) bool                                     { return false }
func readLink(vfs.Dir, string) (string, error)              { return "", errors.ErrUnsupported }
func infoOf(*os.File) (vfs.Info, error)                     { return vfs.Info{}, errors.ErrUnsupported }
