//go:build !windows

package main

import "syscall"

func apart() *syscall.SysProcAttr { return nil }
