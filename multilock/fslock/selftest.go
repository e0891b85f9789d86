package fslock

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// selfTest is the proof that the file system refuses what the protocol needs it
// to refuse. It is made once per base directory and host; a mark keeps the result.
type selfTest struct {
	mu   sync.Mutex
	done bool
	traits
}

// traits are what the test finds out about a file system that keeps the rules.
type traits struct {
	// replaces says that a rename takes the place of an empty directory. BeeGFS,
	// SMB and plain SFTP never do that: the empty one is removed first there.
	replaces bool
	// grain is the step of the times of directories, zero if it is less than a second.
	grain time.Duration
}

// requirement is one rule that the file system must keep.
type requirement struct {
	rule string
	keep func(dir vfs.Dir) error
}

// checkFileSystem makes the test if there is no mark of an earlier one.
func (s *Source) checkFileSystem() (traits, error) {
	s.tested.mu.Lock()
	defer s.tested.mu.Unlock()
	if s.tested.done {
		return s.tested.traits, nil
	}
	found, err := s.loadOrTest()
	if err != nil {
		return traits{}, err
	}
	s.tested.done, s.tested.traits = true, found
	return found, nil
}

func (s *Source) loadOrTest() (traits, error) {
	private, err := s.private.use()
	if err != nil {
		return traits{}, s.stagingError(err)
	}
	defer s.private.done(private)
	name := s.markName()
	if found, ok := findMark(private, name); ok {
		return found, nil
	}
	found, err := s.testRepeatedly()
	if err != nil {
		return traits{}, err
	}
	return found, putMark(private, name, found)
}

// testAttempts bounds how often the test is made while replies get lost.
const testAttempts = 3

// testRepeatedly makes the test anew when one of its calls said that something
// exists, or does not, in a directory that nobody else knows: that is the answer
// to the repetition of a request whose reply was lost.
func (s *Source) testRepeatedly() (found traits, err error) {
	for range testAttempts {
		found, err = s.test()
		if !is(err, syscall.EEXIST, syscall.ENOENT, syscall.ESTALE) || errors.Is(err, source.ErrInvalid) {
			break
		}
	}
	return found, err
}

// test tries the rules out in a directory of its own.
func (s *Source) test() (found traits, err error) {
	token, err := newToken()
	if err != nil {
		return traits{}, err
	}
	staging, err := s.staging.use()
	if err != nil {
		return traits{}, opError("open the staging directory", "", err)
	}
	defer s.staging.done(staging)
	name := token + testSuffix
	if err := staging.Mkdir(name, dirMode); err != nil {
		return traits{}, opError("test the filesystem", "", err)
	}
	dir, err := staging.OpenDir(name)
	if err != nil {
		return traits{}, opError("test the filesystem", "", err)
	}
	defer func() {
		cleanTest(dir)
		_ = dir.Close()
		_ = staging.Rmdir(name)
	}()
	if err := prepareTest(dir); err != nil {
		return traits{}, opError("test the filesystem", "", err)
	}
	if err := s.require(dir); err != nil {
		return traits{}, err
	}
	return s.explore(dir)
}

// explore finds the traits of a file system that keeps the rules.
func (s *Source) explore(dir vfs.Dir) (found traits, err error) {
	found.grain, err = learnGrain(dir)
	switch {
	case errors.Is(err, errStill):
		return traits{}, s.unfit("a touch moves the time of a directory", err)
	case err != nil:
		return traits{}, opError("test the filesystem", "", err)
	}
	err = dir.Rename("full", dir, "empty")
	if inDoubt(err) || gone(err) {
		return traits{}, opError("test the filesystem", "", err)
	}
	found.replaces = err == nil
	return found, nil
}

// errStill says that a directory's time does not move.
var errStill = errors.New("it stays the same")

// require tries each rule.
func (s *Source) require(dir vfs.Dir) error {
	for _, r := range requirements() {
		err := r.keep(dir)
		if errors.As(err, new(unproved)) {
			return opError("test the filesystem", "", err)
		}
		if err != nil {
			return s.unfit(r.rule, err)
		}
	}
	return nil
}

// unfit says which rule the file system breaks.
func (s *Source) unfit(rule string, err error) error {
	return &source.InvalidError{
		What: "base directory", Got: s.base.Path(), Err: err,
		Why: fmt.Sprintf("its filesystem (type %s) breaks the rule %q, so no lock on it would be safe: %v", s.kind.Type, rule, err),
	}
}

func prepareTest(dir vfs.Dir) error {
	for _, name := range []string{"full", "other", "empty"} {
		if err := dir.Mkdir(name, dirMode); err != nil {
			return err
		}
	}
	for _, name := range []string{"full", "other"} {
		if err := putFile(dir, name); err != nil {
			return err
		}
	}
	return nil
}

func putFile(dir vfs.Dir, name string) error {
	sub, err := dir.OpenDir(name)
	if err != nil {
		return err
	}
	defer sub.Close() //nolint:errcheck // a directory
	f, err := sub.Create("file", fileMode)
	if err != nil {
		return err
	}
	return f.Close()
}

func requirements() []requirement {
	return []requirement{
		{"a rename onto a directory that is not empty fails and changes nothing", func(dir vfs.Dir) error {
			return refused(dir, dir.Rename("full", dir, "other"), "full", "other")
		}},
		{"rmdir of a directory that is not empty fails and changes nothing", func(dir vfs.Dir) error {
			return refused(dir, dir.Rmdir("other"), "other")
		}},
		{"mkdir of a name that exists fails", func(dir vfs.Dir) error {
			return refused(dir, dir.Mkdir("other", dirMode), "other")
		}},
		{"an exclusive create of a name that exists fails", exclusiveCreate},
	}
}

func exclusiveCreate(dir vfs.Dir) error {
	sub, err := dir.OpenDir("full")
	if err != nil {
		return err
	}
	defer sub.Close() //nolint:errcheck // a directory
	f, err := sub.Create("file", fileMode)
	if err == nil {
		_ = f.Close()
	}
	return refused(dir, err, "full")
}

// unproved is an error that says nothing about a rule: the server did not answer.
type unproved struct{ error }

func (u unproved) Unwrap() error { return u.error }

// refused says whether a call failed as it had to and the files are still there.
func refused(dir vfs.Dir, err error, intact ...string) error {
	switch {
	case err == nil:
		return errors.New("it succeeded")
	case inDoubt(err), gone(err):
		return unproved{err}
	}
	for _, name := range intact {
		if err := undamaged(dir, name); err != nil {
			return err
		}
	}
	return nil
}

func undamaged(dir vfs.Dir, name string) error {
	sub, err := dir.OpenDir(name)
	if err == nil {
		_, err = sub.StatName("file")
		_ = sub.Close()
	}
	switch {
	case err == nil:
		return nil
	case is(err, syscall.ENOENT, syscall.ENOTDIR):
		return fmt.Errorf("afterwards the file in %s was gone: %w", name, err)
	}
	return unproved{err}
}

// cleanTest empties the test's directory; a leftover is the janitor's.
func cleanTest(dir vfs.Dir) {
	for _, name := range []string{"full", "other", "empty"} {
		if sub, err := dir.OpenDir(name); err == nil {
			_ = sub.Unlink("file")
			_ = sub.Close()
		}
		_ = dir.Rmdir(name)
	}
}
