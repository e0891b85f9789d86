package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/google/uuid"
)

// replaceFile writes a file in one step: it is renamed into place when all of it is
// written, so that a reader finds the old one or the new one. What is no file, such
// as a pipe or a device, is written to as it is; a symbolic link stays one.
func replaceFile(path string, content []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return writeTo(path, os.O_WRONLY, content)
	}
	next := filepath.Join(filepath.Dir(path), ".multilock-"+uuid.NewString()+".tmp") // such a name is nobody else's
	err := writeTo(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, content)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(next)))
	}
	return nil
}

// writeTo makes sure that a regular file has reached the disk or the server: it is
// renamed next, and must not be empty after a crash.
func writeTo(path string, flags int, content []byte) error {
	f, err := os.OpenFile(path, flags, 0o666) //nolint:gosec // the umask decides
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && flags&os.O_CREATE != 0 {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
