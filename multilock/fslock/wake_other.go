//go:build !linux

package fslock

// notifier is inotify on Linux; elsewhere waiters poll.
type notifier struct{}

type waker struct{}

func (n *notifier) subscribe(*handle, string) *waker { return nil }

func (n *notifier) close() {}

func (w *waker) channel() <-chan struct{} { return nil }

func (w *waker) close() {}
