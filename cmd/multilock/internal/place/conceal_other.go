//go:build !linux

package place

// forgetEnviron does nothing: on this system a process cannot change the environment that ps(1) shows.
func forgetEnviron(...string) error { return nil }
