//go:build !linux

package s3lab

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
