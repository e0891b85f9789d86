// Package conform compares the clients of package simnfs with a real kernel's: both run the same small
// programs, drawn from a seed. Every answer of the kernel must be possible in simnfs.
// A program is a sequence of steps, each by one of several clients of a directory. Both a simulated and a
// real client may drop any cached data at any time. Package conform searches for the places where it was
// dropped, until all simulated answers equal the kernel's. It also compares times and file numbers: by
// which of them are equal, and which are later.
// has the same, and which is later.
package conform

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Step is one call of one client. A client keeps open directories and files in slots; directory 0 is the
// main directory.
type Step struct {
	Client   int
	Do       string
	Dir      int
	Name     string
	To       int // of a rename
	NewName  string
	File     int
	OpensDir int
}

func (s Step) String() string {
	host := string(rune('A' + s.Client))
	switch s.Do {
	case "rename":
		return fmt.Sprintf("%s: rename %d/%s to %d/%s", host, s.Dir, s.Name, s.To, s.NewName)
	case "opendir", "enter":
		return fmt.Sprintf("%s: %s %d/%s as %d", host, s.Do, s.Dir, s.Name, s.OpensDir)
	case "open", "make", "append", "create":
		return fmt.Sprintf("%s: %s %d/%s as file %d", host, s.Do, s.Dir, s.Name, s.File)
	case "read", "write", "statfile", "filehandle", "close":
		return fmt.Sprintf("%s: %s file %d", host, s.Do, s.File)
	case "stat", "cached", "touch", "list":
		return fmt.Sprintf("%s: %s %d", host, s.Do, s.Dir)
	}
	return fmt.Sprintf("%s: %s %d/%s", host, s.Do, s.Dir, s.Name)
}

// weights are the relative frequencies of the calls.
var weights = map[string]int{
	"mkdir": 6, "rename": 7, "unlink": 5, "rmdir": 5, "touch": 2, "touchfile": 1, "stat": 4, "statname": 6, "cached": 2,
	"handle": 2, "list": 2, "opendir": 6, "enter": 4, "open": 4, "make": 6, "append": 1, "create": 2, "read": 3, "write": 2,
	"statfile": 2, "filehandle": 1, "close": 3,
}

// calls returns the calls, each repeated by its weight.
func calls() (all []string) {
	for _, call := range strings.Fields("mkdir rename unlink rmdir touch touchfile stat statname cached handle list opendir enter open make append create read write statfile filehandle close") {
		for range weights[call] {
			all = append(all, call)
		}
	}
	return all
}

const (
	dirs  = 3
	files = 2
)

// Draw draws a program.
func Draw(seed uint64, clients, steps int) (program []Step) {
	random := rand.New(rand.NewPCG(seed, uint64(clients))) //nolint:gosec // to be repeated
	all := calls()
	name := func() string { return []string{"x", "x", "y"}[random.IntN(3)] }
	for range steps {
		program = append(program, Step{
			Client: random.IntN(clients), Do: all[random.IntN(len(all))],
			Dir: random.IntN(dirs+1) % dirs, Name: name(), To: random.IntN(dirs), NewName: name(),
			File: random.IntN(files), OpensDir: 1 + random.IntN(dirs-1),
		})
	}
	return program
}
