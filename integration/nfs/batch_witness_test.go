package nfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// witness is a file that is not on the share, and the same on all hosts. Whoever
// runs a job appends a line when it begins and one when it ends. The order of the
// lines is that of what happened: one kernel appends them all, each with one write.
//
//	start NAME WORKER TOKEN
//	end NAME WORKER TOKEN
//	commit NAME                   a result has come into place on the server's disk
type witness struct{ path string }

// workerVariable tells a job who runs it.
const workerVariable = "WITNESS_WORKER"

func newWitness(t testing.TB) *witness {
	t.Helper()
	w := &witness{filepath.Join(outside(t), "witness")}
	require.NoError(t, os.WriteFile(w.path, nil, 0o666))
	return w
}

// shell is a command line that tells the witness of its beginning and its end.
func (w *witness) shell(work string) string {
	tell := fmt.Sprintf(`$MULTILOCK_NAME $%s $MULTILOCK_TOKEN" >>%s`, workerVariable, w.path)
	return fmt.Sprintf(`echo "start %s; %s; echo "end %s`, tell, work, tell)
}

func (w *witness) tell(words ...string) error {
	file, err := os.OpenFile(w.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(words, " ") + "\n")
	return errors.Join(err, file.Close())
}

func (w *witness) read(t testing.TB) account {
	t.Helper()
	text, err := os.ReadFile(w.path)
	require.NoError(t, err)
	a, err := readAccount(string(text))
	require.NoError(t, err)
	return a
}

// commits counts the results that have come into place.
func (w *witness) commits(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile(w.path)
	require.NoError(t, err)
	return bytes.Count(text, []byte("commit "))
}

// watch tells the witness of each result that comes into place on the server's own
// disk, which is when the server carries out the rename, whatever reply reaches
// whom. A line may come late, so what follows it was certainly later.
func (w *witness) watch(t testing.TB, results string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	require.NoError(t, err)
	_, err = unix.InotifyAddWatch(fd, results, unix.IN_MOVED_TO)
	require.NoError(t, err)
	events := os.NewFile(uintptr(fd), "inotify")
	var reader sync.WaitGroup
	reader.Go(func() {
		if err := w.relay(events); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("watch the results: %v", err)
		}
	})
	t.Cleanup(func() {
		_ = events.Close()
		reader.Wait()
	})
}

// relay passes the events on. A result is never renamed to where it is.
func (w *witness) relay(events *os.File) error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := events.Read(buffer)
		if err != nil {
			return err
		}
		for rest := buffer[:n]; len(rest) > 0; {
			event := (*unix.InotifyEvent)(unsafe.Pointer(&rest[0]))
			end := unix.SizeofInotifyEvent + int(event.Len)
			name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:end], "\x00"))
			if event.Mask&unix.IN_Q_OVERFLOW != 0 {
				return errors.New("events were lost")
			}
			if err := w.tell("commit", name); err != nil {
				return err
			}
			rest = rest[end:]
		}
	}
}
