//go:build !manual

package main

// forRelease returns no commands in this build; see manual.go.
func forRelease() []maker { return nil }
