package fslock

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The kernel puts several events into one reply: each wakes those whom it names.
func TestEventsThatComeTogether(t *testing.T) {
	n := &notifier{waiting: map[*waker]bool{}}
	woken := map[string]*waker{}
	for _, name := range []string{"one", "two", "three"} {
		woken[name] = &waker{from: n, name: name, signal: make(chan struct{}, 1)}
		n.waiting[woken[name]] = true
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

// Where there are no notices, nobody waits for one.
func TestNoNotices(t *testing.T) {
	w := (&notifier{failed: true}).subscribe(nil, anyLock)
	require.Nil(t, w.channel())
	w.close()
}
