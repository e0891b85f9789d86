//go:build !unix

package place

import "io/fs"

func checkConfigOwner(fs.FileInfo) error { return nil }

// isOwn cannot be told here.
func isOwn(string) bool { return true }
