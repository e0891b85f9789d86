package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/internal/bounded"
)

// logOf identifies the run that a log belongs to.
type logOf struct {
	lock, host string
	began      time.Time
}

// isDirectory reports whether a path is meant as a directory.
func isDirectory(path string) bool {
	if strings.HasSuffix(path, "/") {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// openInTime limits the time for opening a pipe or a file on a server, because the lock is already held.
func (l logOf) openInTime(path string, keep int) (*os.File, string, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), outputTimeout, fmt.Errorf("%s: it cannot be opened; if it is a pipe, no process reads from it", path))
	defer cancel()
	type opened struct {
		file *os.File
		path string
	}
	log, err := bounded.Call(ctx, func(context.Context) (o opened, err error) {
		o.file, o.path, err = l.open(path, keep)
		return o, err
	})
	return log.file, log.path, err
}

// open begins the log of a run. Only the lock's holder rotates its logs. Each slot, and each
// reader, rotates its own.
func (l logOf) open(path string, keep int) (*os.File, string, error) {
	if !isDirectory(path) {
		file, err := outfile.Begin(path, keep)
		return file, place.Absolute(path), err
	}
	dir, err := outfile.MakeDir(path)
	if err != nil {
		return nil, "", err
	}
	defer dir.Close() //nolint:errcheck // a directory
	file, err := l.make(dir)
	if err != nil {
		return nil, "", err
	}
	// This run's log counts as the newest, because clocks of hosts may differ. Old logs that cannot be
	// removed, such as another user's, do not stop the job.
	own, ofKind := filepath.Base(file.Name()), l.ofKind()
	_ = dir.Keep(keep-1, func(name string) bool { return name != own && ofKind(name) })
	return file, filepath.Join(place.Absolute(path), filepath.Base(file.Name())), nil
}

// logTime is the time in a log's name. Names sort by time.
const logTime = "20060102T150405.000Z"

// make creates a file. Logs of the same millisecond get a suffix.
func (l logOf) make(dir outfile.Dir) (file *os.File, err error) {
	for i := range 100 {
		if file, err = dir.Make(l.name(i)); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return file, err
}

func (l logOf) name(again int) string {
	name := fmt.Sprintf("%s.%s.%s", fileName(l.lock), l.began.UTC().Format(logTime), fileName(l.host))
	if again > 0 {
		name += fmt.Sprintf(".%02d", again)
	}
	return name + ".log"
}

// ofKind matches the logs of the same lock.
func (l logOf) ofKind() func(name string) bool {
	form := regexp.MustCompile(`^` + regexp.QuoteMeta(fileName(l.lock)) + `\.\d{8}T\d{6}\.\d{3}Z\..*\.log$`)
	return form.MatchString
}
