//go:build !linux

package place

// Elsewhere a process cannot reach what ps(1) shows of its environment to its own user.
func forgetEnviron(...string) error { return nil }
