//go:build !unix

package command

import (
	"syscall"
)

func ownSession() *syscall.SysProcAttr { return nil }

// readNow has nothing to read: jobs cannot be started here.
func readNow(uintptr, []byte) int { return 0 }
