package fslock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// makeResults opens the directory of results, and makes it if it is absent.
func (s *Source) makeResults() (*shareddir.Handle, error) {
	done, err := s.results.Use()
	if !gone(err) {
		return done, err
	}
	dir, err := s.files.Make(doneDir, shareddir.Afresh)
	if err != nil {
		return nil, err
	}
	_ = dir.Close() // the shared descriptor is opened in one place, below
	return s.results.Use()
}

// Outcome implements source.Committer. An earlier holder that was stopped in here, and resumes when another
// process holds the lock, must not start the job because of an outdated answer: so the lock is verified at
// the end.
func (l *lease) Outcome(context.Context) (result source.Result, err error) {
	if err := l.use(); err != nil {
		return source.Result{}, err
	}
	defer l.leave()
	err = l.src.amongResults("learn the result", l.record.Name, func() error {
		result, err = l.src.outcome(l.record.Name, l.moveAway)
		return err
	})
	if err == nil || errors.Is(err, source.ErrNoResult) {
		err = l.verified(err)
	}
	if err != nil {
		return source.Result{}, err
	}
	return result, nil
}

// verified returns what was learned, if this lease still holds the lock. If it does not, or that is
// unknown, the answer is dropped: above all the answer that there is no result, which starts the job. It
// sends no heartbeat: a heartbeat would prove nothing, and make an NFS client drop what it has cached of
// the directory.
func (l *lease) verified(learned error) error {
	if err := l.present(); err != nil {
		return err
	}
	return learned
}

// outcome asks the server whether there is a result, and reads it.
func (s *Source) outcome(name string, moveAway away) (source.Result, error) {
	done, err := s.makeResults()
	if err != nil {
		return source.Result{}, resultsError(name, err)
	}
	defer s.results.Done(done)
	made, err := s.ask(done, name)
	if err != nil {
		return source.Result{}, err
	}
	if !made && s.base.Kind.NFS { // usually a result: read it before checking what it is
		if r, err := s.readFresh(done, name); err == nil {
			return r, nil
		}
	}
	switch err := s.settle(done, name, made, moveAway); {
	case errors.Is(err, errOccupied):
		return source.Result{Name: name, Foreign: "a directory with files in it is in its place"}, nil
	case err != nil:
		return source.Result{}, err
	}
	r, err := s.readFresh(done, name)
	if errors.Is(err, source.ErrNoResult) || is(err, syscall.ESTALE) {
		return source.Result{}, groupfiles.ErrAgain // the client had cached a result that is gone
	}
	return r, err
}

// readFresh reads a result as the server has it.
func (s *Source) readFresh(done vfs.Dir, name string) (source.Result, error) {
	if err := s.files.Refresh(done); err != nil {
		return source.Result{}, resultsError(name, err)
	}
	return readResult(done, name)
}

// recorded reports whether the result of a name is content, byte for byte. An error means that it could not
// be read.
func (s *Source) recorded(done vfs.Dir, name string, content []byte) (bool, error) {
	if err := s.files.Refresh(done); err != nil {
		return false, ignoreGone(err)
	}
	found, err := readAll(done, name, maxChunkResult)
	switch {
	case err == nil:
		return bytes.Equal(found, content), nil
	case gone(err), is(err, syscall.EISDIR, syscall.ELOOP, syscall.ENXIO, syscall.EACCES, syscall.EPERM):
		return false, nil
	}
	return false, err
}

// Result implements source.Ledger.
func (s *Source) Result(_ context.Context, name string) (source.Result, error) {
	return s.readWith(readResult, name)
}

// Summary implements source.Chunks.
func (s *Source) Summary(_ context.Context, name string) (source.Result, error) {
	return s.readWith(readSummary, name)
}

// Current implements source.Chunks.
func (s *Source) Current(_ context.Context, name string) (r source.Result, err error) {
	if err := CheckName(name); err != nil {
		return source.Result{}, err
	}
	err = s.amongResults("read the result", name, func() error {
		r, err = s.outcome(name, leave)
		return err
	})
	return r, err
}

type resultReader func(done vfs.Dir, name string) (source.Result, error)

func (s *Source) readWith(read resultReader, name string) (r source.Result, err error) {
	if err := CheckName(name); err != nil {
		return source.Result{}, err
	}
	err = s.amongResults("read the result", name, func() error {
		r, err = s.result(read, name)
		return err
	})
	return r, err
}

func (s *Source) result(read resultReader, name string) (source.Result, error) {
	done, err := s.results.Present()
	if gone(err) {
		return source.Result{}, source.ErrNoResult
	}
	if err != nil {
		return source.Result{}, opError("open the results", name, err)
	}
	defer s.results.Done(done)
	r, err := read(done, name)
	if is(err, syscall.ESTALE) {
		return source.Result{}, groupfiles.ErrAgain
	}
	return r, err
}

// readResult reads a result. A result in an unknown format counts as one.
func readResult(done vfs.Dir, name string) (source.Result, error) {
	data, err := readAll(done, name, maxChunkResult)
	return resultIn(name, data, err, parseResult)
}

// readSummary reads only the first line of a result.
func readSummary(done vfs.Dir, name string) (source.Result, error) {
	data, err := readAll(done, name, maxRecord)
	return resultIn(name, data, err, parseSummary)
}

func resultIn(name string, data []byte, err error, parse func(string, []byte) source.Result) (source.Result, error) {
	switch {
	case err == nil:
		return parse(name, data), nil
	case is(err, syscall.ENOENT, syscall.EISDIR):
		return source.Result{}, source.ErrNoResult // a directory is a probe's
	case is(err, syscall.ELOOP, syscall.ENXIO, syscall.EACCES, syscall.EPERM):
		return source.Result{Name: name, Foreign: "it cannot be read: " + err.Error()}, nil
	}
	return source.Result{}, opError("read the result", name, err)
}

// readAll reads a file, up to one byte more than most.
func readAll(dir vfs.Dir, name string, most int) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	return readFile(f, nil, most)
}

// Results implements source.Ledger.
func (s *Source) Results(context.Context) ([]string, error) {
	done, err := s.results.Present()
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, opError("open the results", "", err)
	}
	defer s.results.Done(done)
	names, err := shareddir.Names(done.ListFiles, func(name string) bool {
		return s.base.Kind.Local || !isSilly(name) // a replaced result that a process on that client had open
	})
	if gone(err) {
		s.results.Drop(done)
		return nil, nil
	}
	if err != nil {
		return nil, opError("list the results", "", err)
	}
	return names, nil
}

var _ source.Ledger = (*Source)(nil)

// Revision implements source.Ledger: every commit renames a file into the directory of the results, which
// changes that directory's times, by the server's clock. It is "" as long as the directory does not exist.
func (s *Source) Revision(context.Context) (string, error) {
	for range shareddir.Rounds() {
		revision, err := s.revision()
		if !gone(err) {
			return revision, err
		}
	}
	return "", nil // removed again and again: there are no results
}

func (s *Source) revision() (string, error) {
	results, err := s.results.Use()
	if gone(err) {
		return "", nil
	}
	if err != nil {
		return "", opError("open the results", "", err)
	}
	defer s.results.Done(results)
	info, err := results.Stat()
	if gone(err) || (err == nil && info.Links == 0) {
		s.results.Drop(results)
		return "", syscall.ESTALE
	}
	if err != nil {
		return "", opError("look at the results", "", err)
	}
	return fmt.Sprintf("%d %d %d", info.Inode, info.ModTime.UnixNano(), info.ChangeTime.UnixNano()), nil
}
