//go:build !linux && !darwin && !freebsd

package faultfs

import "syscall"

func errorName(number syscall.Errno) string { return number.Error() }
