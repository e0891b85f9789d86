//go:build !unix

package place

import "io/fs"

// checkPrivate accepts any file: its mode says nothing of who may read it.
func checkPrivate(fs.FileInfo) error { return nil }
