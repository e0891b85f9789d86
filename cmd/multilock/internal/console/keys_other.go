//go:build !unix

package console

import "os"

// Keys are none here.
func Keys(*os.File) (keys <-chan byte, restore func()) { return nil, func() {} }
