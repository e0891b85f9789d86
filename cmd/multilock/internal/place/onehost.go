package place

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
)

// WarnOneHost warns, once for each directory, that no other host sees it: the same command on another
// host would acquire another lock. It prints nothing for other directories, or if Place.Local is set.
func (s *Source) WarnOneHost(say func(format string, args ...any)) {
	files, ok := s.Locks.(*fslock.Source)
	if !ok || s.Place.Local || files.Notice() != "" {
		return
	}
	kind := files.UnsaidOneHost()
	if kind == "" {
		return
	}
	say("warning: %s is on a local filesystem (%s): other hosts do not see its locks. "+
		"Use a directory that all hosts share, or set %s=1 if one host is meant (shown once)", Absolute(files.Base()), kind, EnvLocal)
	_ = files.SaidOneHost() // after an error the warning appears again
}

// checkShared rejects a directory without the marker of doctor --mark.
func checkShared(files *fslock.Source) error {
	marked, err := files.IsMarkedShared()
	if marked || err != nil {
		return err
	}
	base, where := Absolute(files.Base()), ""
	if kind := files.OneHost(); kind != "" {
		where = ", and is on a local filesystem (" + kind + ")"
	}
	return &source.InvalidError{What: "base directory", Got: base, Why: fmt.Sprintf("has no file %s, which --require-shared requires%s: "+
		"mount the shared filesystem there; if it is mounted, run once: %s", shareddir.SharedMarkPath, where, console.CommandLine([]string{"multilock", "-d", base, "doctor", "--mark"}))}
}

// MarkShared marks a directory as shared by hosts. path is the marker's path, and kind the filesystem's
// type if it is known that no other host sees it.
func (s *Source) MarkShared() (path, kind string, err error) {
	files, ok := s.Locks.(*fslock.Source)
	if !ok {
		return "", "", &console.UsageError{Command: "doctor", Err: errors.New("--mark: only a directory is marked, and all hosts see the same server")}
	}
	return filepath.Join(Absolute(files.Base()), shareddir.SharedMarkPath), files.OneHost(), files.MarkShared()
}
