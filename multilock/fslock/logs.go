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

// Logs is the directory with the output of a group's jobs: BASE/.multilock/groups/GROUP/logs, with files
// HOST.TOKEN.NUMBER.out. Each file belongs to one process, and only that process writes it. No decision
// depends on these files.
type Logs struct {
	src  *Source
	dir  vfs.Dir
	once groupfiles.Once
	runs bool // this is the output of runs under one lock
}

// OpenLogs opens the directory, and makes it if it is absent.
func (s *Source) OpenLogs() (*Logs, error) {
	return s.logsIn(s.files.Make(logsDir, vfs.Dir.OpenDir))
}

// FindLogs opens the directory without making it: the error is fs.ErrNotExist if no job has printed
// anything.
func (s *Source) FindLogs() (*Logs, error) { return s.logsIn(s.files.Find(logsDir)) }

func (s *Source) logsIn(dir vfs.Dir, err error) (*Logs, error) {
	if err != nil {
		return nil, err
	}
	return &Logs{src: s, dir: dir, once: groupfiles.Once{}}, nil
}

// Create makes a file. The name must be unique, for example because it contains a token.
func (l *Logs) Create(name string) (vfs.File, error) {
	return l.dir.Create(l.prefix()+name+logSuffix, shareddir.AppendMode)
}

// prefix begins a file's name with the host. Files of runs have the host inside only, so that names sort by
// run.
func (l *Logs) prefix() string {
	if l.runs {
		return ""
	}
	return strings.ReplaceAll(source.Shorten(l.src.self.Host, 64), "/", "_") + "."
}

// Cached reports whether written output stays on this host, and may be lost, until the file is synced.
func (l *Logs) Cached() bool { return !l.src.base.Kind.Local }

// Names lists the files that exist now, sorted.
func (l *Logs) Names() ([]string, error) {
	if err := l.src.files.Refresh(l.dir); err != nil {
		return nil, err
	}
	return shareddir.Names(l.dir.List, func(name string) bool { return strings.HasSuffix(name, logSuffix) })
}

// Open opens a file for reading. If a file has several names, only the first one that is opened counts. It
// must not be called concurrently.
func (l *Logs) Open(name string) (vfs.File, error) {
	f, _, err := l.once.Open(l.dir, name)
	return f, err
}

// Path returns the path of a file, for messages.
func (l *Logs) Path(name string) string { return filepath.Join(l.dir.Path(), name) }

// Close closes the directory. Open files stay open.
func (l *Logs) Close() error { return l.dir.Close() }

// elsewhereSuffix ends the name of a host's file that lists other directories with its jobs' output, one
// per line.
const (
	elsewhereSuffix = ".elsewhere"
	maxElsewhere    = 64 << 10
)

// NoteElsewhere records that jobs on this host print into another directory. It only affects messages.
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

// Elsewhere lists the recorded directories as HOST:DIRECTORY, sorted.
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
