//go:build unix

package main

import "syscall"

// ownSession keeps a keeper out of reach of its caller's terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
