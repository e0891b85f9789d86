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

// logOf is the run whose output a log has.
type logOf struct {
	lock, host string
	began      time.Time
}

// isDirectory says that a path is meant as one.
func isDirectory(path string) bool {
	if strings.HasSuffix(path, "/") {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// openInTime does not wait for ever, with the lock in its hands, for a reader of a pipe or for a
// server.
func (l logOf) openInTime(path string, keep int) (*os.File, string, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), keepPatience, fmt.Errorf("%s: it cannot be opened; if it is a pipe, nobody reads from it", path))
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

// open begins the log of a run. It is the one holder of the lock that moves and removes those
// of earlier runs: of slots and readers each has his own, which are not those of the others.
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
	// Ours counts as the newest, whatever a host's clock says. One that cannot be removed, as
	// somebody else's in a directory of several users, is no reason not to run the job.
	own, ofKind := filepath.Base(file.Name()), l.ofKind()
	_ = dir.Keep(keep-1, func(name string) bool { return name != own && ofKind(name) })
	return file, filepath.Join(place.Absolute(path), filepath.Base(file.Name())), nil
}

// logTime is the form of the time in a log's name: such names have the order of their times.
const logTime = "20060102T150405.000Z"

// make makes a new file. Two of one millisecond differ in what follows.
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

// ofKind tells logs of the same lock from all other files.
func (l logOf) ofKind() func(name string) bool {
	form := regexp.MustCompile(`^` + regexp.QuoteMeta(fileName(l.lock)) + `\.\d{8}T\d{6}\.\d{3}Z\..*\.log$`)
	return form.MatchString
}
