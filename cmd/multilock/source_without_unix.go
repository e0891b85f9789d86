//go:build unix && (no_mongodb || no_cloudshell)

package main

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
	self, err := os.Executable()
	if err != nil || filepath.Base(os.Args[0]) == fullBuild {
		return withoutSource(what, tag)
	}
	full := filepath.Join(filepath.Dir(self), fullBuild)
	args := append([]string{full}, os.Args[1:]...)
	err = syscall.Exec(full, args, os.Environ())
	if errors.Is(err, fs.ErrNotExist) {
		return withoutSource(what, tag)
	}
	return fmt.Errorf("this multilock was built without %s, and %s, which should have it, cannot be run: %w", what, full, err)
}
