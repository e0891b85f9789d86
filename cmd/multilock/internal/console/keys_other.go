//go:build !unix

package console

import "os"

// Keys returns no keys: they are not supported on this system.
func Keys(*os.File) (keys <-chan byte, restore func()) { return nil, func() {} }
