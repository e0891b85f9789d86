//go:build darwin || freebsd

package faultfs

import (
	"os"

	"golang.org/x/sys/unix"
)

func stop() error { return unix.Kill(os.Getpid(), unix.SIGSTOP) }
