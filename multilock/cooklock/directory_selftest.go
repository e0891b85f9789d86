package cooklock

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// selfTest is the proof that the file system refuses what a register needs it to
// refuse. It is made once per base directory, before the first register is; a
// marker keeps the result, by the kind of file system, so that a copied directory
// is tested anew.
type selfTest struct {
	mu   sync.Mutex
	done bool
}

func (d *Directory) checkFileSystem(staging vfs.Dir) error {
	d.tested.mu.Lock()
	defer d.tested.mu.Unlock()
	if d.tested.done {
		return nil
	}
	cook, err := d.walk(d.fresh, privateDir, cookDir)
	if err != nil {
		return err
	}
	defer cook.Close() //nolint:errcheck // a directory
	marker := "fs-" + d.kind.Type + ".tested"
	if _, err := cook.StatName(marker); err != nil {
		if err := d.testFileSystem(staging); err != nil {
			return err
		}
		if err := cook.Mkdir(marker, dirMode); err != nil && !vfs.Is(err, syscall.EEXIST) {
			return err
		}
	}
	d.tested.done = true
	return nil
}

// testAttempts bounds how often the test is made while replies get lost.
const testAttempts = 3

// testFileSystem makes the test anew when one of its calls said that something
// exists, or does not, in a directory that nobody else knows: that is the answer
// to the repetition of a request whose reply was lost.
func (d *Directory) testFileSystem(staging vfs.Dir) (err error) {
	for range testAttempts {
		err = d.testOnce(staging)
		if errors.Is(err, source.ErrInvalid) || !vfs.Is(err, syscall.EEXIST, syscall.ENOENT, syscall.ESTALE) {
			break
		}
	}
	return err
}

func (d *Directory) testOnce(staging vfs.Dir) error {
	token, err := newToken()
	if err != nil {
		return err
	}
	if err := staging.Mkdir(token, dirMode); err != nil {
		return err
	}
	defer moveAway(staging, token, staging) //nolint:errcheck // swept later
	dir, err := staging.OpenDir(token)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // a directory
	for _, name := range []string{"one", "two"} {
		if err := writeNode(dir, name, node{token: name}); err != nil {
			return err
		}
	}
	if err := d.require(dir, "a rename onto a directory that is not empty fails", dir.Rename("one", dir, "two")); err != nil {
		return err
	}
	if err := d.require(dir, "rmdir of a directory that is not empty fails", dir.Rmdir("two")); err != nil {
		return err
	}
	return d.testRemoved(dir)
}

// testRemoved tries to move something into a directory that was removed while it
// was open: a swap would believe in a value that nobody else can find.
func (d *Directory) testRemoved(dir vfs.Dir) error {
	if err := dir.Mkdir("three", dirMode); err != nil {
		return err
	}
	removed, err := dir.OpenDir("three")
	if err != nil {
		return err
	}
	defer removed.Close() //nolint:errcheck // a directory
	if err := dir.Rmdir("three"); err != nil {
		return err
	}
	return d.require(dir, "a rename into a directory that was removed fails", dir.Rename("one", removed, "one"))
}

// require checks that a call was refused and has changed nothing. An error that
// says nothing about the rule is handed on as it is.
func (d *Directory) require(dir vfs.Dir, rule string, refusal error) error {
	if vfs.InDoubt(refusal) {
		return refusal
	}
	broken := errors.New("it succeeded")
	if refusal != nil {
		broken = intact(dir)
	}
	if broken == nil || vfs.InDoubt(broken) && !errors.Is(broken, errDamaged) && refusal != nil {
		return broken
	}
	return &source.InvalidError{
		What: "base directory", Got: d.base.Path(), Err: broken,
		Why: fmt.Sprintf("its filesystem (type %s) breaks the rule %q, so no register on it would be safe: %v", d.kind.Type, rule, broken),
	}
}

// intact says whether both directories are what they were.
func intact(dir vfs.Dir) error {
	for _, name := range []string{"one", "two"} {
		sub, err := dir.OpenDir(name)
		if err != nil {
			return err
		}
		n, err := readNode(sub)
		_ = sub.Close()
		if err == nil && n.token != name {
			err = errDamaged
		}
		if err != nil {
			return err
		}
	}
	return nil
}
