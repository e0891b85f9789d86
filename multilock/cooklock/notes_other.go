//go:build !unix

package cooklock

import "os"

// DefaultNotes is empty: notes are not supported on this system.
func DefaultNotes() string { return "" }

func ownedBySelf(os.FileInfo) bool { return false }

func timeNamespace() string { return "" }
