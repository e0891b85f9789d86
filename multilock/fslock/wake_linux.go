package fslock

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/multilock/go/multilock/shareddir"
	"golang.org/x/sys/unix"
)

// notifier wakes waiters when a lock's directory is removed through this host's own kernel. inotify does
// not see the changes of other NFS clients (inotify(7)), so it only shortens the wait and never replaces
// polling.
//
// A source has one notifier for all its waiters, and keeps it, because the kernel needs milliseconds to
// close an inotify descriptor.
type notifier struct {
	mu      sync.Mutex
	file    *os.File
	failed  bool
	group   *shareddir.Handle // the directory that is being watched
	waiting []*waker          // in order of arrival
}

// waker is one waiter's subscription.
type waker struct {
	from   *notifier
	name   string
	signal chan struct{}
}

// subscribe returns nil if notifications are not available. The name may be anyLock.
func (n *notifier) subscribe(group *shareddir.Handle, name string) *waker {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.watch(group) {
		return nil
	}
	w := &waker{from: n, name: name, signal: make(chan struct{}, 1)}
	n.waiting = append(n.waiting, w)
	return w
}

// watch makes sure that the group's current directory is being watched.
func (n *notifier) watch(group *shareddir.Handle) bool {
	if n.failed || (n.file == nil && !n.start()) {
		return false
	}
	if n.group == group {
		return true
	}
	const events = unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_DELETE_SELF | unix.IN_ONLYDIR
	number, err := group.Pin()
	if err != nil {
		return false
	}
	defer group.Unpin()
	path := fmt.Sprintf("/proc/self/fd/%d", number)
	err = control(n.file, func(fd int) error {
		_, err := unix.InotifyAddWatch(fd, path, events)
		return err
	})
	if err != nil {
		return false
	}
	n.group = group
	return true
}

func (n *notifier) start() bool {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		n.failed = true // out of instances (fs.inotify.max_user_instances): polling will do
		return false
	}
	n.file = os.NewFile(uintptr(fd), "inotify")
	go n.run(n.file)
	return true
}

// control uses a file's descriptor without making it blocking, as Fd would.
func control(f *os.File, use func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var used error
	if err := conn.Control(func(fd uintptr) { used = use(int(fd)) }); err != nil { //nolint:gosec // a descriptor fits
		return err
	}
	return used
}

// run reads events until the file is closed.
func (n *notifier) run(file *os.File) {
	buf := make([]byte, 16*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
	for {
		got, err := file.Read(buf)
		if err != nil {
			return
		}
		n.wake(buf[:got])
	}
}

// wake wakes the waiters that the events concern.
func (n *notifier) wake(events []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(events) >= unix.SizeofInotifyEvent {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&events[0])) //nolint:gosec // the kernel aligns events
		rest := events[unix.SizeofInotifyEvent:]
		length := min(int(e.Len), len(rest))
		name := strings.TrimRight(string(rest[:length]), "\x00")
		if e.Mask&unix.IN_IGNORED != 0 {
			n.group = nil // the directory is gone; the next waiter watches its successor
		}
		n.notify(name)
		events = rest[length:]
	}
}

// notify wakes the longest waiter for the name, since only one can acquire the lock, and all waiters that
// watch the group. A nameless event means that the group itself was removed, or that events were dropped:
// it wakes every waiter.
func (n *notifier) notify(name string) {
	found := false
	for _, w := range n.waiting {
		first := w.name == name && !found
		found = found || first
		if first || name == "" || w.name == anyLock {
			w.wake()
		}
	}
}

func (w *waker) wake() {
	select {
	case w.signal <- struct{}{}:
	default: // the previous signal is still pending
	}
}

func (w *waker) channel() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.signal
}

// close ends the subscription. It passes an unused notification on to the next waiter.
func (w *waker) close() {
	if w == nil {
		return
	}
	n := w.from
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = slices.DeleteFunc(n.waiting, func(other *waker) bool { return other == w })
	if len(w.signal) > 0 && w.name != anyLock {
		n.notify(w.name)
	}
}

// close ends the notifier, in the background because the kernel is slow to close it.
func (n *notifier) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file != nil {
		go n.file.Close()
		n.file, n.group = nil, nil
	}
}
