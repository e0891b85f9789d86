package place

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
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

// TellOneHost says, once for a directory, that no other host sees it: the same line on another host
// takes another lock. It says nothing where that is not so, or meant so.
func (s *Source) TellOneHost(say func(format string, args ...any)) {
	files, ok := s.Locks.(*fslock.Source)
	if !ok || s.Place.Local || files.Notice() != "" {
		return
	}
	kind := files.UnsaidOneHost()
	if kind == "" {
		return
	}
	say("warning: %s is on a filesystem of this host alone (%s): locks in it keep nobody out on other hosts. To share them, "+
		"give a directory that all hosts have mounted with -d. If one host is meant, %s=1 keeps this quiet; it is said once", Absolute(files.Base()), kind, EnvLocal)
	_ = files.SaidOneHost() // or it is said once more
}

// EnvRequireShared says that locks are taken only in a directory that has the marker of doctor --mark.
const EnvRequireShared = "MULTILOCK_REQUIRE_SHARED"

// readRequireShared reads what is for a directory alone. What the environment says may be meant
// for others.
func (p *Place) readRequireShared(a Asked, usual config, e *console.Env) (err error) {
	text := e.Getenv(EnvRequireShared)
	switch {
	case a.RequireShared != nil:
		p.RequireShared = *a.RequireShared
	case text == "":
		p.RequireShared = usual.RequireShared.value == "true"
	default:
		if p.RequireShared, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%s=%q: write 1 or 0", EnvRequireShared, text)
		}
	}
	return nil
}

// checkShared refuses a directory without the marker of doctor --mark.
func checkShared(files *fslock.Source) error {
	marked, err := files.IsMarkedShared()
	if marked || err != nil {
		return err
	}
	base, where := Absolute(files.Base()), ""
	if kind := files.OneHost(); kind != "" {
		where = ", and is on a filesystem of this host alone (" + kind + ")"
	}
	return &source.InvalidError{What: "base directory", Got: base, Why: fmt.Sprintf("has no file %s, which --require-shared wants%s: "+
		"mount the shared filesystem there; if it is mounted, run once: %s", shareddir.SharedMarkPath, where, console.CommandLine([]string{"multilock", "-d", base, "doctor", "--mark"}))}
}

// MarkShared marks a directory as one that hosts share. The text says where the mark is, and kind
// is the filesystem's type if it is known that no other host sees it.
func (s *Source) MarkShared() (path, kind string, err error) {
	files, ok := s.Locks.(*fslock.Source)
	if !ok {
		return "", "", &console.UsageError{Command: "doctor", Err: errors.New("--mark: only a directory is marked, and all hosts see the same server")}
	}
	return filepath.Join(Absolute(files.Base()), shareddir.SharedMarkPath), files.OneHost(), files.MarkShared()
}
