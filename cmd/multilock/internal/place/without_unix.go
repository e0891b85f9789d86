//go:build unix && (no_mongodb || no_cloudshell)

package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// fullBuild is what a program with all sources is called beside one without some.
const fullBuild = "multilock-full"

const orBeside = ", or put it beside this one under the name " + fullBuild

// handOver puts the full build in the place of this process, before that has opened
// anything: with the same arguments, environment and standard files. It returns only
// if there is none.
//
// It lies beside this program, and is not searched for in PATH: what is found there by
// accident must not get the environment, which has a password. A program that goes by
// its name never hands over, so that one which lacks the source itself is the last.
func handOver(what, tag string) error {
	self, err := ownPath()
	if err != nil || filepath.Base(os.Args[0]) == fullBuild {
		return withoutSource(what, tag)
	}
	full := filepath.Join(filepath.Dir(self), fullBuild)
	if _, err := os.Lstat(full); errors.Is(err, fs.ErrNotExist) {
		return withoutSource(what, tag)
	}
	if err := trust(full, self); err != nil {
		return fmt.Errorf("this multilock was built without %s, and does not hand over to %s: %w", what, full, err)
	}
	err = syscall.Exec(full, append([]string{full}, os.Args[1:]...), os.Environ())
	return fmt.Errorf("this multilock was built without %s, and %s, which should have it, cannot be run: %w", what, full, err)
}

// ownPath is where this program lies, whatever links led to it.
func ownPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(self)
}

// trust keeps a program that somebody else put there from being run: in a directory
// like /tmp, where everybody may, or beside a link to a program with more rights.
func trust(full, self string) error {
	if os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() {
		return errors.New("a program that runs with the rights of its owner hands over to nobody")
	}
	owner, err := ownerOf(full)
	if err != nil {
		return err
	}
	mine, err := ownerOf(self)
	if err != nil {
		return err
	}
	if owner != 0 && owner != mine && owner != os.Getuid() {
		return fmt.Errorf("it belongs to user %d, who is neither root, nor you, nor the owner of %s", owner, self)
	}
	return nil
}

func ownerOf(path string) (int, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return int(info.Sys().(*syscall.Stat_t).Uid), nil //nolint:forcetypeassert // it is that on every Unix
}
