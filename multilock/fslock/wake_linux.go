package fslock

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waker tells a waiter that its lock's directory was removed, if that happens
// through this host's own kernel: inotify sees nothing of what other NFS clients
// do (inotify(7)), so it only shortens the wait and never replaces the polling.
type waker struct {
	file   *os.File
	name   string
	signal chan struct{}
}

// newWaker returns nil where there is no such notice to be had.
func newWaker(group *handle, name string) *waker {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil // out of instances (fs.inotify.max_user_instances): polling will do
	}
	path := fmt.Sprintf("/proc/self/fd/%d", group.Descriptor())
	const events = unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_DELETE_SELF | unix.IN_ONLYDIR
	if _, err := unix.InotifyAddWatch(fd, path, events); err != nil {
		_ = unix.Close(fd)
		return nil
	}
	w := &waker{file: os.NewFile(uintptr(fd), "inotify"), name: name, signal: make(chan struct{}, 1)}
	go w.run()
	return w
}

// run reads events until the file is closed.
func (w *waker) run() {
	buf := make([]byte, 16*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return
		}
		if w.concerns(buf[:n]) {
			select {
			case w.signal <- struct{}{}:
			default: // it has not noticed the last one yet
			}
		}
	}
}

// concerns says whether one of the events is about the lock, or the group itself.
func (w *waker) concerns(events []byte) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&events[0])) //nolint:gosec // the kernel aligns events
		rest := events[unix.SizeofInotifyEvent:]
		if int(e.Len) > len(rest) {
			return true // cannot be; wake up rather than sleep
		}
		if e.Len == 0 || strings.TrimRight(string(rest[:e.Len]), "\x00") == w.name {
			return true
		}
		events = rest[e.Len:]
	}
	return false
}

func (w *waker) channel() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.signal
}

func (w *waker) close() {
	if w != nil {
		_ = w.file.Close()
	}
}
