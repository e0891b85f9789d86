//go:build !unix

package place

import "io/fs"

// checkPrivate accepts any file: on this system the mode does not show which users may read it.
func checkPrivate(fs.FileInfo) error { return nil }
