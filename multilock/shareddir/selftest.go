package shareddir

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// selfTest is the proof that the file system refuses what the protocol needs it
// to refuse. It is made once per base directory and host; a mark keeps the result.
type selfTest struct {
	mu    bounded.Turn
	done  bool
	found Traits
}

// Traits are what the test finds out about a file system that keeps the rules.
type Traits struct {
	// Replaces says that a rename takes the place of an empty directory. BeeGFS,
	// SMB and plain SFTP never do that: the empty one is removed first there.
	Replaces bool
	// Grain is the step of the times of directories, zero if it is less than a second.
	Grain time.Duration
	// ByPath says that what is open is found by its path: see alone.
	ByPath bool
}

// requirement is one rule that the file system must keep.
type requirement struct {
	rule string
	keep func(dir vfs.Dir) error
}

// Traits makes the filesystem's test if there is no mark of an earlier one. The error is
// source.ErrInvalid if the filesystem breaks a rule, and names it.
func (b *Base) Traits() (Traits, error) {
	b.tested.mu.Lock()
	defer b.tested.mu.Unlock()
	if b.tested.done {
		return b.tested.found, nil
	}
	found, err := b.loadOrTest()
	if err != nil {
		return Traits{}, err
	}
	b.tested.done, b.tested.found = true, found
	return found, nil
}

func (b *Base) loadOrTest() (Traits, error) {
	private, err := b.Private.Use()
	if err != nil {
		return Traits{}, b.StagingError(err)
	}
	defer b.Private.Done(private)
	name := b.markName()
	found, ok := b.findMark(private, name)
	if !ok {
		if found, err = b.testRepeatedly(); err == nil {
			err = putMark(private, name, found)
		}
	}
	if err == nil && found.ByPath {
		err = b.alone()
	}
	return found, err
}

// testAttempts bounds how often the test is made while replies get lost.
const testAttempts = 3

// testRepeatedly makes the test anew when one of its calls said that something
// exists, or does not, in a directory that nobody else knows: that is the answer
// to the repetition of a request whose reply was lost.
func (b *Base) testRepeatedly() (found Traits, err error) {
	for range testAttempts {
		found, err = b.test()
		if !vfs.Is(err, syscall.EEXIST, syscall.ENOENT, syscall.ESTALE) || errors.Is(err, source.ErrInvalid) {
			break
		}
	}
	return found, err
}

// test tries the rules out in a directory of its own.
func (b *Base) test() (found Traits, err error) {
	token := source.NewToken()
	staging, err := b.Staging.Use()
	if err != nil {
		return Traits{}, opError("open the staging directory", err)
	}
	defer b.Staging.Done(staging)
	name := token + TestSuffix
	defer removeTest(staging, name) // also after a mkdir that failed: it may have been carried out
	if err := staging.Mkdir(name, DirMode); err != nil {
		return Traits{}, opError("test the filesystem", err)
	}
	dir, err := staging.OpenDir(name)
	if err != nil {
		return Traits{}, opError("test the filesystem", err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	if err := prepareTest(dir); err != nil {
		return Traits{}, opError("test the filesystem", err)
	}
	if err := cmp.Or(b.requireKind(), b.require(dir), b.requireCase(dir)); err != nil {
		return Traits{}, err
	}
	return b.explore(dir)
}

// explore finds the Traits of a file system that keeps the rules.
func (b *Base) explore(dir vfs.Dir) (found Traits, err error) {
	found.Grain, err = learnGrain(dir)
	switch {
	case errors.Is(err, errStill):
		return Traits{}, b.unfit("a touch changes the time of a directory", err)
	case err != nil:
		return Traits{}, opError("test the filesystem", err)
	}
	err = dir.Rename("full", dir, "empty")
	if vfs.InDoubt(err) || vfs.Gone(err) {
		return Traits{}, opError("test the filesystem", err)
	}
	found.Replaces = err == nil
	if found.ByPath, err = b.findsByPath(dir); err != nil {
		return Traits{}, opError("test the filesystem", err)
	}
	return found, nil
}

// errStill says that a directory's time does not move.
var errStill = errors.New("its time did not change")

// require tries each rule.
func (b *Base) require(dir vfs.Dir) error {
	for _, r := range requirements() {
		err := r.keep(dir)
		if errors.As(err, new(unproved)) {
			return opError("test the filesystem", err)
		}
		if err != nil {
			return b.unfit(r.rule, err)
		}
	}
	return nil
}

// unfit says which rule the file system breaks.
func (b *Base) unfit(rule string, err error) error {
	return &source.InvalidError{
		What: "base directory", Got: b.Path(), Err: err,
		Why: fmt.Sprintf("its filesystem (type %s) breaks the rule %q, so no lock on it would be safe: %v; see multilock help filesystems", b.typeName(), rule, err),
	}
}

// typeName is how people call the file system's type, if the table of mounts tells.
func (b *Base) typeName() string {
	if m, err := mountOf(b.Dir); err == nil {
		return m.kind
	}
	return b.Kind.Type
}

// TestDirs are what the filesystem's test has in its directory, and TestFile is the empty file
// that may be in each of them.
func TestDirs() []string { return []string{"full", "other", "empty", hidingDir} }

// TestFile is explained at TestDirs.
const TestFile = "file"

func prepareTest(dir vfs.Dir) error {
	for _, name := range []string{"full", "other", "empty"} {
		if err := dir.Mkdir(name, DirMode); err != nil {
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
	f, err := sub.Create(TestFile, FileMode)
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
			return refused(dir, dir.Mkdir("other", DirMode), "other")
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
	f, err := sub.Create(TestFile, FileMode)
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
	case vfs.InDoubt(err), vfs.Gone(err):
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
		_, err = sub.StatName(TestFile)
		_ = sub.Close()
	}
	switch {
	case err == nil:
		return nil
	case vfs.Is(err, syscall.ENOENT, syscall.ENOTDIR):
		return fmt.Errorf("the file in %s was gone afterwards: %w", name, err)
	}
	return unproved{err}
}

// removeTest removes the test's directory. It starts over while the client has not
// finished closing a file: until then it keeps a removed file under another name. What
// stays after all is left to clean.
func removeTest(staging vfs.Dir, name string) {
	open := Opener(vfs.Dir.OpenDir)
	for range Rounds() {
		if dir, err := open(staging, name); err == nil {
			cleanTest(dir, open)
			_ = dir.Close()
		}
		if !vfs.NotEmpty(staging.Rmdir(name)) {
			return
		}
		open = Afresh
	}
}

func cleanTest(dir vfs.Dir, open Opener) {
	for _, name := range []string{"full", "other", "empty"} {
		if sub, err := open(dir, name); err == nil {
			_ = sub.Unlink(TestFile)
			_ = sub.Close()
		}
		_ = dir.Rmdir(name)
	}
}
