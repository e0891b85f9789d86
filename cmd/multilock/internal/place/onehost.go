package place

import (
	"fmt"
	"strconv"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/fslock"
)

// EnvLocal says that locks are meant for one host.
const EnvLocal = "MULTILOCK_LOCAL"

func (p *Place) readLocal(e *console.Env) (err error) {
	text := e.Getenv(EnvLocal)
	if text == "" {
		return nil
	}
	if p.Local, err = strconv.ParseBool(text); err != nil {
		return fmt.Errorf("%s=%q: write 1 or 0", EnvLocal, text)
	}
	return nil
}

// OneHost is what who takes the first lock in a directory is to know, if no other host sees
// that: the same line on another host takes another lock. It is "" where that is not so, or
// meant so. It is said once, for whoever comes later finds the directory in use.
func (s *Source) OneHost() string {
	files, ok := s.Locks.(*fslock.Source)
	if !ok || s.Place.Local || files.Notice() != "" {
		return ""
	}
	kind := files.FirstOnOneHost()
	if kind == "" {
		return ""
	}
	return fmt.Sprintf("%s is on a filesystem of this host alone (%s): locks in it keep nobody out on other hosts. To share them, "+
		"give a directory that all hosts have mounted with -d. If one host is meant, %s=1 keeps this quiet; it is said once", Absolute(files.Base()), kind, EnvLocal)
}
