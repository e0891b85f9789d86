package fslock

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// Logs is the directory with what the jobs of a group have printed:
// BASE/.multilock/groups/GROUP/logs, with files HOST.TOKEN.NUMBER.out, each of one process
// and written by nobody else. Nothing is decided by what is in it.
type Logs struct {
	src  *Source
	dir  vfs.Dir
	once groupfiles.Once
}

// OpenLogs opens the directory, and makes it if it is absent.
func (s *Source) OpenLogs() (*Logs, error) {
	return s.logsIn(s.files.Make(logsDir, vfs.Dir.OpenDir))
}

// FindLogs opens the directory, and makes nothing: the error is fs.ErrNotExist if no job
// has printed anything.
func (s *Source) FindLogs() (*Logs, error) { return s.logsIn(s.files.Find(logsDir)) }

func (s *Source) logsIn(dir vfs.Dir, err error) (*Logs, error) {
	if err != nil {
		return nil, err
	}
	return &Logs{s, dir, groupfiles.Once{}}, nil
}

// Create makes a file of a name that nobody else uses, such as one with a token.
func (l *Logs) Create(name string) (vfs.File, error) {
	return l.dir.Create(l.prefix()+name+logSuffix, shareddir.AppendMode)
}

func (l *Logs) prefix() string {
	return strings.ReplaceAll(source.Shorten(l.src.self.Host, 64), "/", "_") + "."
}

// Cached says whether what was written stays on this host, and may be lost, until the file
// is synced.
func (l *Logs) Cached() bool { return !l.src.base.Kind.Local }

// Names are the files that are there now, sorted.
func (l *Logs) Names() ([]string, error) {
	if err := l.src.files.Refresh(l.dir); err != nil {
		return nil, err
	}
	return shareddir.Names(l.dir.List, func(name string) bool { return strings.HasSuffix(name, logSuffix) })
}

// Open opens one of them for reading. Of several names of one file the first that is opened
// is the one. It is for one goroutine.
func (l *Logs) Open(name string) (vfs.File, error) {
	f, _, err := l.once.Open(l.dir, name)
	return f, err
}

// Path is where one of them is, for people.
func (l *Logs) Path(name string) string { return filepath.Join(l.dir.Path(), name) }

// Close closes the directory. Files that are open stay so.
func (l *Logs) Close() error { return l.dir.Close() }

// elsewhereSuffix ends the name of a host's file with the directories in which else its jobs'
// output is, a line each.
const (
	elsewhereSuffix = ".elsewhere"
	maxElsewhere    = 64 << 10
)

// NoteElsewhere notes that jobs on this host print into another directory. Nothing but what
// people are told depends on it.
func (l *Logs) NoteElsewhere(dir string) error {
	name := strings.TrimSuffix(l.prefix(), ".") + elsewhereSuffix
	if slices.Contains(l.elsewhere(name), dir) {
		return nil
	}
	f, err := l.dir.OpenAppend(name, shareddir.AppendMode)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(dir + "\n"))
	return errors.Join(err, f.Close())
}

// Elsewhere lists those directories as HOST:DIRECTORY, sorted.
func (l *Logs) Elsewhere() (places []string) {
	hosts, err := shareddir.Names(l.dir.List, func(name string) bool { return strings.HasSuffix(name, elsewhereSuffix) })
	if err != nil {
		return nil
	}
	for _, name := range hosts {
		for _, dir := range l.elsewhere(name) {
			places = append(places, source.Printable(strings.TrimSuffix(name, elsewhereSuffix)+":"+dir))
		}
	}
	slices.Sort(places)
	return places
}

func (l *Logs) elsewhere(name string) []string {
	f, err := l.dir.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read from
	text, err := readFile(f, nil, maxElsewhere)
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}
