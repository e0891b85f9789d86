// Package process identifies processes and finds out whether they are still alive.
//
// A pid alone does not identify a process: the number is reused, it means different processes in different
// pid namespaces, and after a reboot it starts over. An [Identity] adds what distinguishes all of those,
// and Judge only decides what it can prove; in every other case the answer is [Unknown], or [Alive] if a
// process with that number exists and nothing proves that it is another one.
//
// On Linux everything comes from /proc, kill(2) with signal 0 and pidfd_open(2). Elsewhere it comes from
// gopsutil; the comment of each field has the limits. No signal is ever delivered.
package process

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrNotFound is returned if no process, or no process group, has the number.
var ErrNotFound = errors.New("no such process")

// Identity identifies one process on one boot of one machine so that no other can be mistaken for it. It is
// comparable, and an empty field means "unknown".
type Identity struct {
	// Host is the host name as the kernel reports it.
	Host string `json:"host"`
	// Machine is a keyed hash of the machine's id in 16 hexadecimal digits. It survives reboots. Clones of
	// a machine and containers made from one image may share it.
	Machine string `json:"machine,omitempty"`
	// Boot changes at every boot: on Linux /proc/sys/kernel/random/boot_id (random(4)), on macOS and
	// FreeBSD the kernel's own boot id. Systems without one use MACHINE@SECONDS, where SECONDS is the Unix
	// time of the boot, which moves when the clock is set.
	Boot string `json:"boot,omitempty"`
	// Namespace is where PID is a valid number: on Linux the target of /proc/self/ns/pid
	// (pid_namespaces(7)), followed by that of /proc/self/ns/time unless it is the initial one, because
	// Start is read relative to the reader's time namespace (time_namespaces(7)). Elsewhere it is the name
	// of the operating system, or empty within a FreeBSD jail.
	Namespace string `json:"pidns,omitempty"`
	// PID is the process id within Namespace.
	PID int `json:"pid"`
	// Start distinguishes processes that have the same number at different times. On Linux it is field 22
	// of /proc/PID/stat unchanged: clock ticks since boot (proc_pid_stat(5)), which setting the clock does
	// not affect. Elsewhere it is the time of creation in milliseconds of Unix time.
	Start uint64 `json:"start,omitempty"`
}

// String returns the host and the process id, for people.
func (i Identity) String() string {
	if i.PID <= 0 {
		return i.Host
	}
	return fmt.Sprintf("%s pid %d", i.Host, i.PID)
}

// Self returns the identity of the calling process. It reads half a dozen small files, so callers should
// keep the result; it stays valid as long as the process lives. Unknown fields are left empty; only an
// unknown host name is an error.
func Self() (Identity, error) {
	id, err := here()
	if err != nil {
		return Identity{}, err
	}
	id.PID = os.Getpid()
	id.Start = ownStart()
	return id, nil
}

// Find returns the identity of the process that has the number pid now, in the pid namespace of the caller.
// It also finds a zombie. Start is 0 if the system hides it (hidepid in proc(5), a /proc of another pid
// namespace). The error is ErrNotFound if there is no such process.
func Find(pid int) (Identity, error) {
	if pid <= 0 {
		return Identity{}, fmt.Errorf("find process %d: %w", pid, ErrNotFound)
	}
	id, err := here()
	if err != nil {
		return Identity{}, err
	}
	id.PID = pid
	id.Start, err = startOf(pid)
	if err != nil {
		return Identity{}, fmt.Errorf("find process %d: %w", pid, err)
	}
	return id, nil
}

// here fills in everything but the process itself.
func here() (Identity, error) {
	host, err := os.Hostname()
	if err != nil {
		return Identity{}, fmt.Errorf("host name: %w", err)
	}
	machine := hashMachineID(machineID())
	return Identity{
		Host:      host,
		Machine:   machine,
		Boot:      bootID(machine),
		Namespace: namespace(),
	}, nil
}

// machineHashBytes is enough to distinguish the machines of a cluster: among ten thousand, the chance that
// two share a hash is about 3 in 10^12.
const machineHashBytes = 8

// hashMachineID derives an id for this program alone. machine-id(5) asks applications not to expose the id
// itself, and to hash it with a key of their own; like sd_id128_get_machine_app_specific(3) this is an
// HMAC-SHA256 with the machine's id as the key.
func hashMachineID(raw string) string {
	if !isMachineID(raw) {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(raw))
	mac.Write([]byte("github.com/multilock/go process identity"))
	return hex.EncodeToString(mac.Sum(nil)[:machineHashBytes])
}

// isMachineID rejects values that many machines share: the empty string, zeros, and the word in an image's
// /etc/machine-id until its first boot.
func isMachineID(raw string) bool {
	return raw != "uninitialized" && strings.Trim(raw, "0-") != ""
}
