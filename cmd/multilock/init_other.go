//go:build !linux

package main

func asInit([]string) (code int, yes bool) { return 0, false }
