//go:build unix

package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// defaultPath is searched when the environment has no PATH: the value of confstr(_CS_PATH) on
// Linux, which execvp(3) uses.
const defaultPath = "/bin:/usr/bin"

// lookPath finds the file to execute. exec.LookPath searches the runner's PATH instead of the
// job's, and rejects results below ".".
func (s Spec) lookPath() (string, error) {
	name := s.Args[0]
	if name == "" {
		return "", &NotFoundError{Command: name, Err: syscall.ENOENT}
	}
	if strings.Contains(name, "/") {
		return name, nil // the kernel reports an error for it
	}
	var denied error
	// Not filepath.SplitList: an empty PATH is one empty entry, which is ".".
	for dir := range strings.SplitSeq(s.path(), ":") {
		candidate := "./" + name
		if dir != "" {
			candidate = dir + "/" + name
		}
		err := checkExecutable(candidate)
		if err == nil {
			return candidate, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			denied = err
		}
	}
	if denied != nil {
		return "", &NotRunnableError{Command: name, Reason: "permission denied", Err: denied}
	}
	return "", &NotFoundError{Command: name, Err: syscall.ENOENT}
}

func (s Spec) path() string {
	for _, entry := range s.Env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			return path
		}
	}
	return defaultPath
}

// checkExecutable skips directories as shells do, so that one with the command's name does not hide
// a program in a later entry of PATH.
func checkExecutable(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return syscall.EISDIR
	}
	return unix.Access(file, unix.X_OK)
}

// explain turns an error of fork and exec into an error of this package.
func (s Spec) explain(path string, err error) error {
	name := s.Args[0]
	info, missing := os.Stat(path)
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM),
		errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("start %s: %w", name, err)
	case errors.Is(err, syscall.ENOENT) && missing != nil:
		return &NotFoundError{Command: name, Err: err}
	case errors.Is(err, syscall.ENOENT):
		return &NotRunnableError{Command: name, Reason: "its interpreter does not exist", Err: err}
	case missing == nil && info.IsDir():
		return &NotRunnableError{Command: name, Reason: "it is a directory", Err: err}
	}
	return &NotRunnableError{Command: name, Reason: err.Error(), Err: err}
}
