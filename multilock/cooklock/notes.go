package cooklock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
)

// notes record this host's observations, so that a command which cron starts every minute and which
// never waits can continue the watch of the previous one. A note is only valid on the boot on which
// it was written, and with a clock that the processes share: processes of another time namespace
// have another clock (time_namespaces(7)).
//
// They are on this host only. On a shared filesystem, two machines made from one memory image could
// mistake each other's notes for their own.
type notes struct {
	dir   string
	place string
	self  process.Identity
	zone  string                       // the time namespace
	clock func() (time.Duration, bool) // boottime.AwakeSinceBoot
}

// note is a watch as stored.
type note struct {
	Boot      string `json:"boot"`
	Namespace string `json:"namespace"`
	Zone      string `json:"clock"`
	Awake     int64  `json:"awake_ns"` // boottime.AwakeSinceBoot
	Number    uint64 `json:"number"`
	Value     []byte `json:"value"`
}

func newNotes(dir, place string, self process.Identity) *notes {
	if dir == "" {
		return nil
	}
	return &notes{dir: dir, place: place, self: self, zone: timeNamespace(), clock: boottime.AwakeSinceBoot}
}

// path returns the file for a lock of the notes' place.
func (n *notes) path(name string) string {
	sum := sha256.Sum256([]byte(n.place + "\x00" + name))
	return filepath.Join(n.dir, "cook-"+hex.EncodeToString(sum[:16]))
}

// load returns the recorded watch. Without a valid note the watch starts from zero.
func (n *notes) load(name string) (watch, bool) {
	if checkNotes(n.dir) != nil {
		return watch{}, false
	}
	data, err := os.ReadFile(n.path(name))
	if err != nil {
		return watch{}, false
	}
	var found note
	if json.Unmarshal(data, &found) != nil || len(found.Value) == 0 {
		return watch{}, false
	}
	now, ok := n.clock()
	elapsed := now.Nanoseconds() - found.Awake
	if !ok || !n.ours(found) || found.Awake <= 0 || elapsed < 0 {
		return watch{}, false
	}
	return watch{value: found.Value, number: found.Number, since: boottime.Now().Add(-time.Duration(elapsed))}, true
}

// ours reports whether a note was written with the clock that this process uses.
func (n *notes) ours(found note) bool {
	return found.Boot != "" && found.Boot == n.self.Boot && found.Namespace == n.self.Namespace && found.Zone == n.zone
}

// store replaces the note in one step. The duration of the watch is read before the clock: if this
// process is stopped between the two, the recorded watch is too short, and never too long.
func (n *notes) store(name string, w watch) error {
	watched := w.since.Awake()
	awake, ok := n.clock()
	if !ok || n.self.Boot == "" {
		return errors.New("this system has no clock that all processes share and no user can set")
	}
	data, err := json.Marshal(note{
		Boot: n.self.Boot, Namespace: n.self.Namespace, Zone: n.zone, Awake: (awake - watched).Nanoseconds(), Number: w.number, Value: w.value,
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return err
	}
	if err := checkNotes(n.dir); err != nil {
		return err
	}
	return replaceFile(n.path(name), data)
}

func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".note-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// checkNotes rejects a directory that another user could write to: a forged note would break the
// lock.
func checkNotes(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ownedBySelf(info) {
		return fmt.Errorf("%s must be a directory of this user that no other user can write to", dir)
	}
	return nil
}
