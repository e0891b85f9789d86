package fslock

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"syscall"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// The manifest of a group is the file "list" in the directory
// BASE/.multilock/groups/GROUP/manifest. The directory is prepared in staging and
// renamed to its place, which succeeds only where there is none, or an empty one:
// so a manifest is there as a whole or not at all, and is never replaced. Its
// sections (manifest_sections.go) come into their places in the same way.

var _ source.ManifestStore = (*Source)(nil)

// Publish implements source.ManifestStore. What is there already is right even if a
// cache says so: a manifest never changes.
func (s *Source) Publish(_ context.Context, manifest []byte) (current []byte, err error) {
	err = inRounds("publish the manifest", "", func() error {
		current, err = s.publish(manifest)
		return err
	})
	return current, err
}

func (s *Source) publish(manifest []byte) ([]byte, error) {
	private, err := s.openGroupFiles(vfs.Dir.OpenDir)
	if err != nil {
		return nil, manifestError("open the group's files", err)
	}
	defer private.Close() //nolint:errcheck // a directory
	current, err := s.list(private, manifestDir, manifest)
	if err == nil || !gone(err) {
		return current, manifestError("read the manifest", err)
	}
	return s.placeList(private, manifestDir, manifest)
}

// placeList stages a list and renames it to its place. Whatever that answers, the list that
// is there afterwards is the one that counts.
func (s *Source) placeList(parent vfs.Dir, name string, list []byte) ([]byte, error) {
	staging, err := s.base.Staging.Use()
	if err != nil {
		return nil, s.base.StagingError(err)
	}
	defer s.base.Staging.Done(staging)
	token := source.NewToken()
	entry := token + listSuffix
	if err := s.stageList(staging, entry, list); err != nil {
		s.discardList(staging, entry)
		if is(err, syscall.EEXIST) {
			return nil, errAgain // the repetition of a request whose reply was lost
		}
		return nil, manifestError("prepare the manifest", err)
	}
	renamed := staging.Rename(entry, parent, name)
	if renamed != nil {
		s.discardList(staging, entry)
	}
	current, err := s.list(parent, name, list)
	switch {
	case err == nil && renamed == nil:
		err = s.settleList(parent)
	case gone(err) && renamed != nil:
		return s.refusedList(parent, name, renamed, list)
	}
	return current, manifestError("read the manifest", err)
}

// stageList writes the file. It is synced: it is to outlive the machine.
func (s *Source) stageList(staging vfs.Dir, entry string, list []byte) error {
	if err := staging.Mkdir(entry, shareddir.DirMode); err != nil {
		return err
	}
	dir, err := staging.Enter(entry)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // a directory
	f, err := dir.Create(manifestFile, shareddir.FileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(list)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// discardList takes a staged one back. The file goes first: a rename that is
// carried out afterwards places an empty directory, which is no manifest. What is
// no directory goes as it is: a link is not followed. What is left is the janitor's.
func (s *Source) discardList(staging vfs.Dir, entry string) {
	dir, err := staging.Enter(entry)
	if err != nil {
		_ = staging.Unlink(entry)
		return
	}
	_ = dir.Unlink(manifestFile)
	_ = dir.Close()
	_ = staging.Rmdir(entry)
}

// settleList brings the name of a new list to stable storage; an NFS server has done that
// when it answers.
func (s *Source) settleList(parent vfs.Dir) error {
	if !s.base.Kind.Local {
		return nil
	}
	return parent.Sync()
}

// refusedList is for a rename that failed though no list is to be seen. An NFS client may
// remember that there is none: the answer of a mkdir, which is always sent, ends that. Or
// an empty directory that a crash left is in the way, where a rename replaces none.
func (s *Source) refusedList(parent vfs.Dir, name string, renamed error, list []byte) ([]byte, error) {
	if !notEmpty(renamed) && !forbidden(renamed) {
		return nil, manifestError("publish the manifest", renamed)
	}
	_ = parent.Mkdir(name, shareddir.DirMode)
	if parent.Rmdir(name) == nil {
		return nil, errAgain
	}
	current, err := s.list(parent, name, list)
	if is(err, syscall.ENOTDIR) || gone(err) && s.hasNoList(parent, name) {
		return nil, &source.InvalidError{
			What: "lock group", Got: s.group, Err: renamed,
			Why: parent.Path() + "/" + name + " is not the directory of a manifest; move it away",
		}
	}
	return current, manifestError("read the manifest", err)
}

// hasNoList says of what is in the place of a list that it has none, and is still there after that: others may have
// placed theirs, and have taken it away again.
func (s *Source) hasNoList(parent vfs.Dir, name string) bool {
	dir, err := parent.OpenDir(name)
	if err != nil {
		return false
	}
	defer dir.Close() //nolint:errcheck // a directory
	f, err := dir.Open(manifestFile)
	if err == nil {
		_ = f.Close()
		return false
	}
	own, err := dir.Stat()
	if err != nil {
		return false
	}
	there, err := parent.StatName(name)
	return err == nil && there.Same(own)
}

// manifestMore is how much more than the caller's own is read of a manifest. It is enough
// to see that they differ, and whose it is.
const manifestMore = 4 << 10

// list reads a list, past what an NFS client remembers of the names in its parent. Of one
// that is longer than ours not all is read.
func (s *Source) list(parent vfs.Dir, name string, ours []byte) ([]byte, error) {
	f, err := s.openList(parent, name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	return readLike(f, ours)
}

// readLike reads a file that may be like ours, which may be long: as long as it is, nothing
// is kept of it.
func readLike(f vfs.File, ours []byte) ([]byte, error) {
	piece := make([]byte, 64<<10)
	for same := 0; ; {
		n, err := f.Read(piece)
		if !bytes.HasPrefix(ours[same:], piece[:n]) {
			rest, err := io.ReadAll(io.LimitReader(f, int64(len(ours)-same+manifestMore)))
			return slices.Concat(ours[:same], piece[:n], rest), err
		}
		same += n
		if errors.Is(err, io.EOF) {
			return ours[:same], nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *Source) openList(parent vfs.Dir, name string) (vfs.File, error) {
	if err := s.refresh(parent); err != nil {
		return nil, err
	}
	dir, err := parent.OpenDir(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	return dir.Open(manifestFile)
}

// Retract implements source.ManifestStore: the manifest is moved away as a whole,
// and removed there.
func (s *Source) Retract(context.Context) error {
	return inRounds("retract the manifest", "", s.retract)
}

func (s *Source) retract() error {
	private, err := s.find(vfs.Dir.OpenDir, groupsDir, s.group)
	if err != nil {
		return manifestError("open the group's files", ignoreGone(err))
	}
	defer private.Close() //nolint:errcheck // a directory
	staging, err := s.base.Staging.Use()
	if err != nil {
		return s.base.StagingError(err)
	}
	defer s.base.Staging.Done(staging)
	token := source.NewToken()
	entry := trashPrefix + token + listSuffix
	err = private.Rename(manifestDir, staging, entry)
	if inDoubt(err) {
		return manifestError("retract the manifest", err)
	}
	s.discardRetracted(staging, entry) // also after the repetition of a rename whose reply was lost
	return manifestError("retract the manifest", ignoreGone(err))
}

// discardRetracted removes what was the group's manifest, with its sections and its board, or
// what was there for it: a link is not followed.
func (s *Source) discardRetracted(staging vfs.Dir, entry string) {
	dir, err := staging.Enter(entry)
	if err != nil {
		_ = staging.Unlink(entry)
		return
	}
	_ = dir.Unlink(manifestFile) // first, for those who are about to continue it
	_ = emptyTree(dir)
	_ = dir.Close()
	_ = staging.Rmdir(entry)
}

// manifestError starts over where the directories were removed meanwhile.
func manifestError(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case gone(err):
		return errAgain
	}
	return opError(op, "", err)
}
