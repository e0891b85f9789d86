package fslock

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// What the janitor may remove is what the protocol itself puts into staging, known by its
// names: whoever can write there can move anything there, in the hope that somebody with
// more rights removes it for him.

const (
	residueDepth = 2                // the filesystem's test has directories in its directory
	residueMost  = 64 + maxSections // entries of one directory; files that NFS clients keep are among them
)

// isStaged says whether an entry of staging has a name that the protocol gives.
func isStaged(entry string) bool {
	token := strings.TrimPrefix(entry, trashPrefix)
	for _, suffix := range []string{listSuffix, shareddir.ClockSuffix, shareddir.TestSuffix} {
		token = strings.TrimSuffix(token, suffix)
	}
	return source.IsToken(token)
}

// isResidue says whether something in a staged directory has such a name.
func isResidue(name string) bool {
	suffixes := append(besides(""), lockedSuffix, peerSuffix)
	return isSilly(name) || name == manifestFile || name == boardFile || isSection(name) || slices.Contains(shareddir.TestNames(), name) ||
		slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// strangeness says why an entry of staging is nothing that the protocol left there, "" if
// it may be.
func strangeness(staging vfs.Dir, entry string, info vfs.Info) string {
	staged, trash := isStaged(entry), strings.HasPrefix(entry, trashPrefix)
	switch {
	case staged && info.Mode.IsDir():
		return strangeIn(staging, entry, 1)
	case info.Mode.IsRegular() && (staged && trash || isSilly(entry)):
		return ""
	}
	if strings.HasPrefix(entry, foundPrefix) {
		return filepath.Join(staging.Path(), entry) + " has what a job wrote into the directory of its lock; take what you need of it, and remove the directory"
	}
	return notOurs(staging, entry)
}

func notOurs(dir vfs.Dir, name string) string {
	return filepath.Join(dir.Path(), name) + " is nothing that multilock puts there; move it away by hand"
}

// strangeIn finds in a directory what is no residue. It looks at few names and not far
// down, whatever there is.
func strangeIn(parent vfs.Dir, name string, depth int) string {
	dir, err := parent.OpenDir(name)
	if is(err, syscall.ENOTDIR, syscall.ELOOP) || gone(err) {
		return ""
	}
	var entries []string
	if err == nil {
		defer dir.Close() //nolint:errcheck // a directory
		entries, err = few(dir)
	}
	switch {
	case gone(err):
		return ""
	case err != nil:
		return "it cannot be looked at: " + err.Error()
	case depth > residueDepth, len(entries) > residueMost:
		return notOurs(parent, name)
	}
	for _, e := range entries {
		if !isResidue(e) {
			return notOurs(dir, e)
		}
		if strange := strangeIn(dir, e, depth+1); strange != "" {
			return strange
		}
	}
	return ""
}

// few are the entries of a directory, or one more than it may have.
func few(dir vfs.Dir) (entries []string, err error) {
	err = dir.List(func(name string) bool {
		entries = append(entries, name)
		return len(entries) <= residueMost
	})
	return entries, err
}

// emptyTree removes what is residue in a directory, and in its directories.
func emptyTree(dir vfs.Dir, depth int) error {
	entries, err := few(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isResidue(e) || depth > residueDepth {
			continue // it has come since the look, and is named by the next one
		}
		if err := dir.Unlink(e); err == nil || gone(err) {
			continue
		}
		sub, err := dir.OpenDir(e)
		if err != nil {
			return err
		}
		err = emptyTree(sub, depth+1)
		_ = sub.Close()
		if err != nil {
			return err
		}
		if err := dir.Rmdir(e); err != nil && !gone(err) && !notEmpty(err) {
			return err
		}
	}
	return nil
}
