//go:build !manual

package main

// forRelease are the commands of a program that makes a release; see manual.go.
func forRelease() []maker { return nil }
