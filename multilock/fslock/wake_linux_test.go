package fslock

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The kernel puts several events into one reply: each wakes the waiters for its name.
// Rule: none (wake-up)
func TestEventsThatComeTogether(t *testing.T) {
	n := &notifier{}
	woken := map[string]*waker{}
	for _, name := range []string{"one", "two", "three"} {
		woken[name] = n.waits(name)
	}
	var events bytes.Buffer
	for _, name := range []string{"one", "two"} {
		require.NoError(t, binary.Write(&events, binary.NativeEndian, unix.InotifyEvent{Mask: unix.IN_DELETE, Len: 16}))
		events.Write(append([]byte(name), make([]byte, 16-len(name))...))
	}
	n.wake(events.Bytes())
	require.Len(t, woken["one"].channel(), 1)
	require.Len(t, woken["two"].channel(), 1)
	require.Empty(t, woken["three"].channel())
}

func (n *notifier) waits(name string) *waker {
	w := &waker{from: n, name: name, signal: make(chan struct{}, 1)}
	n.waiting = append(n.waiting, w)
	return w
}

// A free lock wakes one waiter: the one that has waited longest. If that has given up meanwhile the next
// one is woken. A watcher of the group receives every notification.
// Rule: none (wake-up)
func TestTheOneWhoWaitedLongestIsWoken(t *testing.T) {
	n := &notifier{}
	watcher, first, other, second := n.waits(anyLock), n.waits("one"), n.waits("other"), n.waits("one")
	n.notify("one")
	require.Len(t, watcher.channel(), 1)
	require.Len(t, first.channel(), 1)
	require.Empty(t, second.channel())
	first.close()
	require.Len(t, second.channel(), 1, "what he did not use is not lost")
	<-second.channel()
	second.close()
	n.notify("")
	require.Len(t, other.channel(), 1, "the group itself went: everybody looks")
	other.close()
	watcher.close()
	require.Empty(t, n.waiting)
}

// Without kernel notifications, no waiter waits for one.
// Rule: none (wake-up)
func TestNoNotices(t *testing.T) {
	w := (&notifier{failed: true}).subscribe(nil, anyLock)
	require.Nil(t, w.channel())
	w.close()
}
