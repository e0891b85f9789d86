package fslock

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/vfs"
)

// selfTest is the proof that the file system refuses what the protocol needs it
// to refuse. It is made once per base directory; a marker keeps the result, by
// the kind of file system, so that a copied directory is tested anew.
type selfTest struct {
	mu   sync.Mutex
	done bool
	// replaces says that a rename takes the place of an empty directory. BeeGFS,
	// SMB and plain SFTP never do that: the empty one is removed first there.
	replaces bool
}

// requirement is one rule that the file system must keep.
type requirement struct {
	rule string
	keep func(dir vfs.Dir) error
}

// checkFileSystem makes the test if there is no marker of an earlier one.
func (s *Source) checkFileSystem() (replaces bool, err error) {
	s.tested.mu.Lock()
	defer s.tested.mu.Unlock()
	if s.tested.done {
		return s.tested.replaces, nil
	}
	if s.tested.replaces, err = s.loadOrTest(); err != nil {
		return false, err
	}
	s.tested.done = true
	return s.tested.replaces, nil
}

func (s *Source) loadOrTest() (bool, error) {
	private, err := s.private.use()
	if err != nil {
		return false, s.stagingError(err)
	}
	defer s.private.done(private)
	marker := "fs-" + s.kind.Type + ".replaces"
	marker2 := "fs-" + s.kind.Type + ".refuses"
	for _, m := range []string{marker, marker2} {
		if _, err := private.StatName(m); err == nil {
			return m == marker, nil
		}
	}
	replaces, err := s.testRepeatedly()
	if err != nil {
		return false, err
	}
	if !replaces {
		marker = marker2
	}
	if err := private.Mkdir(marker, dirMode); err != nil && !is(err, syscall.EEXIST) {
		return false, opError("note the result of the filesystem's test", "", err)
	}
	return replaces, nil
}

// testAttempts bounds how often the test is made while replies get lost.
const testAttempts = 3

// testRepeatedly makes the test anew when one of its calls said that something
// exists, or does not, in a directory that nobody else knows: that is the answer
// to the repetition of a request whose reply was lost.
func (s *Source) testRepeatedly() (replaces bool, err error) {
	for range testAttempts {
		replaces, err = s.test()
		if !is(err, syscall.EEXIST, syscall.ENOENT, syscall.ESTALE) || errors.Is(err, multilock.ErrInvalid) {
			break
		}
	}
	return replaces, err
}

// test tries the rules out in a directory of its own.
func (s *Source) test() (replaces bool, err error) {
	token, err := newToken()
	if err != nil {
		return false, err
	}
	staging, err := s.staging.use()
	if err != nil {
		return false, opError("open the staging directory", "", err)
	}
	defer s.staging.done(staging)
	name := token + testSuffix
	if err := staging.Mkdir(name, dirMode); err != nil {
		return false, opError("test the filesystem", "", err)
	}
	dir, err := staging.OpenDir(name)
	if err != nil {
		return false, opError("test the filesystem", "", err)
	}
	defer func() {
		cleanTest(dir)
		_ = dir.Close()
		_ = staging.Rmdir(name)
	}()
	if err := prepareTest(dir); err != nil {
		return false, opError("test the filesystem", "", err)
	}
	if err := s.require(dir); err != nil {
		return false, err
	}
	err = dir.Rename("full", dir, "empty")
	if inDoubt(err) || gone(err) {
		return false, opError("test the filesystem", "", err)
	}
	return err == nil, nil
}

// require tries each rule.
func (s *Source) require(dir vfs.Dir) error {
	for _, r := range requirements() {
		err := r.keep(dir)
		if errors.As(err, new(unproved)) {
			return opError("test the filesystem", "", err)
		}
		if err != nil {
			return &multilock.InvalidError{
				What: "base directory", Got: s.base.Path(), Err: err,
				Why: fmt.Sprintf("its filesystem (type %s) breaks the rule %q, so no lock on it would be safe: %v", s.kind.Type, r.rule, err),
			}
		}
	}
	return nil
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
