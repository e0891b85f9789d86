//go:build !linux

package fslock

import "github.com/multilock/go/multilock/shareddir"

// notifier is inotify on Linux; elsewhere waiters poll.
type notifier struct{}

type waker struct{}

func (n *notifier) subscribe(*shareddir.Handle, string) *waker { return nil }

func (n *notifier) close() {}

func (w *waker) channel() <-chan struct{} { return nil }

func (w *waker) close() {}
