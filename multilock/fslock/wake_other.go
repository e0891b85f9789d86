//go:build !linux

package fslock

// waker is inotify on Linux; elsewhere waiters poll.
type waker struct{}

func newWaker(*handle, string) *waker { return nil }

func (w *waker) channel() <-chan struct{} { return nil }

func (w *waker) close() {}
