package fslock

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/fslock/internal/manifest"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// The janitor may remove only what the protocol itself puts into staging, recognized by names and by
// content: a user who can write there could move a tree there, to have it removed by a process with more
// rights.

const residueMost = 64 + manifest.MaxSections // entries of one directory, including files that NFS clients keep

// isStaged reports whether an entry of staging has a name that the protocol uses.
func isStaged(entry string) bool {
	token := strings.TrimPrefix(entry, groupfiles.TrashPrefix)
	for _, suffix := range []string{manifest.Suffix, shareddir.ClockSuffix, shareddir.TestSuffix} {
		token = strings.TrimSuffix(token, suffix)
	}
	return source.IsToken(token)
}

// strangeness explains why an entry of staging does not come from the protocol, "" if it may.
func strangeness(staging vfs.Dir, entry string, info vfs.Info) string {
	staged, trash := isStaged(entry), strings.HasPrefix(entry, groupfiles.TrashPrefix)
	ours, err := false, error(nil)
	switch {
	case staged && info.Mode.IsDir():
		return strangeIn(staging, entry)
	case info.Mode.IsRegular() && (staged && trash || isSilly(entry)):
		ours, err = isWritten(staging, entry, anyFile)
	case strings.HasPrefix(entry, foundPrefix):
		return filepath.Join(staging.Path(), entry) + " has what a job wrote into the directory of its lock; take what you need of it, and remove the directory"
	}
	return strangeEntry(staging, entry, ours, err)
}

func strangeEntry(dir vfs.Dir, name string, ours bool, err error) string {
	switch {
	case err != nil && !gone(err):
		return "it cannot be looked at: " + err.Error()
	case ours, err != nil:
		return ""
	}
	return filepath.Join(dir.Path(), name) + " is nothing that multilock puts there; move it away by hand"
}

// strangeIn finds a foreign entry in a staged directory. It bounds how many names it reads.
func strangeIn(staging vfs.Dir, name string) string {
	dir, err := staging.OpenDir(name)
	if err != nil {
		return strangeEntry(staging, name, false, err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	entries, err := few(dir)
	if err != nil || len(entries) > residueMost {
		return strangeEntry(staging, name, false, err)
	}
	ours := inStaged()
	for _, e := range entries {
		left, err := ours(dir, e)
		if strange := strangeEntry(dir, e, left, err); strange != "" {
			return strange
		}
	}
	return ""
}

// few lists a directory, up to one entry more than residueMost.
func few(dir vfs.Dir) (entries []string, err error) {
	err = dir.List(func(name string) bool {
		entries = append(entries, name)
		return len(entries) <= residueMost
	})
	return entries, err
}

// residue reports whether the protocol may have left an entry in a directory.
type residue func(dir vfs.Dir, entry string) (bool, error)

// inStaged is for a staged directory: a lock, a list of jobs, or the filesystem's test.
func inStaged() residue {
	lock, known := "", false // the lock's files must all have the same lock name
	return func(dir vfs.Dir, entry string) (bool, error) {
		below, isDir := below(entry)
		name, form := formOf(entry)
		switch {
		case isDir:
			return holdsOnly(dir, entry, below)
		case form == nil:
			return false, nil
		case name != "" && known && name != lock:
			return false, nil
		case name != "":
			lock, known = name, true
		}
		return isWritten(dir, entry, form)
	}
}

// below returns what a subdirectory of a staged directory may contain.
func below(entry string) (residue, bool) {
	name := ""
	form := emptyFile
	switch {
	case slices.Contains(shareddir.TestDirs(), entry):
		name = shareddir.TestFile
	case manifest.IsSection(entry):
		name, form = manifest.File, anyBytes
	case strings.HasSuffix(entry, peerSuffix): // it is empty
	default:
		return nil, false
	}
	return func(dir vfs.Dir, entry string) (bool, error) {
		if entry != name && !isSilly(entry) {
			return false, nil
		}
		return isWritten(dir, entry, form)
	}, true
}

// holdsOnly reports whether an entry is a directory that contains only residue.
func holdsOnly(parent vfs.Dir, name string, ours residue) (bool, error) {
	dir, err := parent.OpenDir(name)
	if is(err, syscall.ENOTDIR, syscall.ELOOP) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	entries, err := few(dir)
	if err != nil || len(entries) > residueMost {
		return false, err
	}
	for _, e := range entries {
		if left, err := ours(dir, e); !left && !gone(err) {
			return false, err
		}
	}
	return true, nil
}

// fileForm reports whether a file begins as files of one type do. A crash may have truncated it.
type fileForm func(begin []byte) bool

// formOf returns the form of a staged directory's file by its name, nil if the protocol does not use the
// name, and the name of the lock if the file belongs to one.
func formOf(entry string) (lock string, form fileForm) {
	switch {
	case isSilly(entry):
		return "", anyFile
	case entry == manifest.File, entry == manifest.ProgressFile:
		return "", anyBytes
	}
	for suffix, form := range map[string]fileForm{
		lockedSuffix: lockFile, jobSuffix: markFile, newJobSuffix: markFile, resultSuffix: resultFile, forgotSuffix: resultFile,
	} {
		if lock, ok := strings.CutSuffix(entry, suffix); ok && lock != "" {
			return lock, form
		}
	}
	return "", nil
}

func emptyFile(begin []byte) bool { return len(bytes.Trim(begin, "\x00")) == 0 }

// anyBytes is for a file without a fixed form: its name, and the files beside it, identify it.
func anyBytes([]byte) bool { return true }

func anyFile(begin []byte) bool {
	return lockFile(begin) || markFile(begin) || resultFile(begin) || listFile(begin)
}

// lockFile is for our lock files, those of later versions, and a Python peer's.
func lockFile(begin []byte) bool {
	head, body, _ := bytes.Cut(begin, []byte("\n"))
	_, _, err := parseHead(head)
	return emptyFile(begin) || err == nil && (len(bytes.TrimSpace(body)) == 0 || startsWith(body, `{"v":`))
}

func markFile(begin []byte) bool {
	return emptyFile(begin) || startsWith(begin, `{"host":`) || len(groupsIn(begin)) > 0
}

func resultFile(begin []byte) bool { return emptyFile(begin) || startsWith(begin, `{"v":`) }

// listFile is for the lists of batch: the first line is a comment with settings for all jobs, or has a tab.
func listFile(begin []byte) bool {
	line, _, _ := bytes.Cut(begin, []byte("\n"))
	return emptyFile(begin) || bytes.HasPrefix(line, []byte("#")) || bytes.IndexByte(line, '\t') > 0
}

func startsWith(begin []byte, text string) bool {
	return strings.HasPrefix(text, string(begin[:min(len(begin), len(text))]))
}

// isWritten reports whether an entry is a regular file of a form.
func isWritten(dir vfs.Dir, entry string, form fileForm) (bool, error) {
	begin, err := readAll(dir, entry, maxRecord)
	switch {
	case is(err, syscall.EISDIR, syscall.ELOOP, syscall.ENXIO):
		return false, nil
	case err != nil:
		return false, err
	}
	return form(begin), nil
}

// emptyTree removes the residue in a staged directory.
func emptyTree(dir vfs.Dir) error { return removeResidue(dir, inStaged()) }

func removeResidue(dir vfs.Dir, ours residue) error {
	entries, err := few(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch left, err := ours(dir, e); {
		case err != nil && !gone(err):
			return err
		case !left:
			continue // it appeared after the look; the next look reports it
		}
		if err := removeEntryOf(dir, e); err != nil {
			return err
		}
	}
	return nil
}

// removeEntryOf removes a file, or a subdirectory of a staged directory.
func removeEntryOf(dir vfs.Dir, entry string) error {
	err := dir.Unlink(entry)
	if err == nil || gone(err) {
		return nil
	}
	below, isDir := below(entry)
	if !isDir {
		return err
	}
	sub, err := dir.OpenDir(entry)
	if err != nil {
		return err
	}
	err = removeResidue(sub, below)
	_ = sub.Close()
	if err != nil {
		return err
	}
	if err := dir.Rmdir(entry); err != nil && !gone(err) && !notEmpty(err) {
		return err
	}
	return nil
}
