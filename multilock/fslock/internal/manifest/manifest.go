// Package manifest keeps the manifest of a group: the file "list" in the directory
// BASE/.multilock/groups/GROUP/manifest. The directory is prepared in staging and renamed to its place,
// which succeeds only if that name is absent or an empty directory: so a manifest is there as a whole or
// not at all, and is never replaced. Its sections are placed in the same way.
package manifest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"syscall"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

const (
	dirName = "manifest"
	// File is the list in its directory, and in that of each section.
	File = "list"
	// ProgressFile is the progress map beside the list.
	ProgressFile = "board"
	// Suffix ends the name of a staged manifest: being prepared, or retracted.
	Suffix = ".manifest"
)

// Manifest is the manifest of a group, with its sections and progress map.
type Manifest struct {
	files groupfiles.Files
	empty func(vfs.Dir) error // removes what multilock has written to a staged directory
}

// New prepares to use a group's manifest.
func New(files groupfiles.Files, empty func(vfs.Dir) error) *Manifest {
	return &Manifest{files, empty}
}

// Publish implements source.ManifestStore. A manifest from a cache is as good as any, because it never
// changes.
func (m *Manifest) Publish(_ context.Context, manifest []byte) (current []byte, err error) {
	err = groupfiles.InRounds("publish the manifest", "", func() error {
		current, err = m.publish(manifest)
		return err
	})
	return current, err
}

func (m *Manifest) publish(manifest []byte) ([]byte, error) {
	private, err := m.files.MakeRoot(vfs.Dir.OpenDir)
	if err != nil {
		return nil, manifestError("open the group's files", err)
	}
	defer private.Close() //nolint:errcheck // a directory
	current, err := m.list(private, dirName, manifest)
	if err == nil {
		current, err = m.newest(private, current)
	}
	if err == nil || !vfs.Gone(err) {
		return current, manifestError("read the manifest", err)
	}
	return m.placeList(private, dirName, manifest)
}

// newest returns the beginning of what replaces the first list, or the first list.
func (m *Manifest) newest(private vfs.Dir, first []byte) ([]byte, error) {
	replaced, err := m.replacement(private)
	if replaced == nil {
		replaced = first
	}
	return replaced, err
}

// placeList stages a list and renames it to its place. Whatever the rename returns, the list that is
// there afterwards counts.
func (m *Manifest) placeList(parent vfs.Dir, name string, list []byte) ([]byte, error) {
	staging, err := m.files.Base.Staging.Use()
	if err != nil {
		return nil, m.files.Base.StagingError(err)
	}
	defer m.files.Base.Staging.Done(staging)
	token := source.NewToken()
	entry := token + Suffix
	if err := m.stageList(staging, entry, list); err != nil {
		m.discardList(staging, entry)
		if vfs.Is(err, syscall.EEXIST) {
			return nil, groupfiles.ErrAgain // a repeated request whose first reply was lost
		}
		return nil, manifestError("prepare the manifest", err)
	}
	renamed := staging.Rename(entry, parent, name)
	if renamed != nil {
		m.discardList(staging, entry)
	}
	current, err := m.list(parent, name, list)
	switch {
	case err == nil && renamed == nil:
		err = m.settleList(parent)
	case vfs.Gone(err) && renamed != nil:
		return m.refusedList(parent, name, renamed, list)
	}
	return current, manifestError("read the manifest", err)
}

// stageList writes and syncs the file, so that it survives a crash of the machine.
func (m *Manifest) stageList(staging vfs.Dir, entry string, list []byte) error {
	if err := staging.Mkdir(entry, shareddir.DirMode); err != nil {
		return err
	}
	dir, err := staging.Enter(entry)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // a directory
	f, err := dir.Create(File, shareddir.FileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(list)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// discardList removes a staged list. It removes the file first: a rename that is carried out later
// places an empty directory, which is no manifest. It does not follow a link. The janitor removes
// what remains.
func (m *Manifest) discardList(staging vfs.Dir, entry string) {
	dir, err := staging.Enter(entry)
	if err != nil {
		_ = staging.Unlink(entry)
		return
	}
	_ = dir.Unlink(File)
	_ = dir.Close()
	_ = staging.Rmdir(entry)
}

// settleList syncs the name of a new list. An NFS server has done that before it replies.
func (m *Manifest) settleList(parent vfs.Dir) error {
	if !m.files.Base.Kind.Local {
		return nil
	}
	return parent.Sync()
}

// refusedList handles a rename that failed although no list was found. An NFS client may have cached that
// the list is absent: a mkdir, which is always sent, corrects that. Or a crash has left an empty directory,
// on a filesystem where a rename does not replace one.
func (m *Manifest) refusedList(parent vfs.Dir, name string, renamed error, list []byte) ([]byte, error) {
	if !vfs.NotEmpty(renamed) && !vfs.Is(renamed, syscall.EPERM, syscall.EACCES, syscall.EBUSY) {
		return nil, manifestError("publish the manifest", renamed)
	}
	_ = parent.Mkdir(name, shareddir.DirMode)
	if parent.Rmdir(name) == nil {
		return nil, groupfiles.ErrAgain
	}
	current, err := m.list(parent, name, list)
	if vfs.Is(err, syscall.ENOTDIR) || vfs.Gone(err) && m.hasNoList(parent, name) {
		return nil, &source.InvalidError{
			What: "lock group", Got: m.files.Group, Err: renamed,
			Why: parent.Path() + "/" + name + " is not the directory of a manifest; move it away",
		}
	}
	return current, manifestError("read the manifest", err)
}

// hasNoList reports whether the directory in the place of a list has no list, and was not replaced
// meanwhile: other hosts may have placed and retracted lists.
func (m *Manifest) hasNoList(parent vfs.Dir, name string) bool {
	dir, err := parent.OpenDir(name)
	if err != nil {
		return false
	}
	defer dir.Close() //nolint:errcheck // a directory
	f, err := dir.Open(File)
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

// manifestMore is how much more than the length of the caller's own list is read: enough to see that
// the lists differ.
const manifestMore = 4 << 10

// list reads a list, past an NFS client's cache of names. It does not read all of a longer one.
func (m *Manifest) list(parent vfs.Dir, name string, ours []byte) ([]byte, error) {
	f, err := m.openList(parent, name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	return readLike(f, ours)
}

// readLike reads a file that may equal ours. It needs no memory for the equal part.
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

func (m *Manifest) openList(parent vfs.Dir, name string) (vfs.File, error) {
	if err := m.files.Refresh(parent); err != nil {
		return nil, err
	}
	dir, err := parent.OpenDir(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	return dir.Open(File)
}

// Retract implements source.ManifestStore: it moves the whole manifest to staging, and removes it
// there.
func (m *Manifest) Retract(context.Context) error {
	return groupfiles.InRounds("retract the manifest", "", m.retract)
}

func (m *Manifest) retract() error {
	private, err := m.files.Find()
	if err != nil {
		return manifestError("open the group's files", groupfiles.IgnoreGone(err))
	}
	defer private.Close() //nolint:errcheck // a directory
	staging, err := m.files.Base.Staging.Use()
	if err != nil {
		return m.files.Base.StagingError(err)
	}
	defer m.files.Base.Staging.Done(staging)
	token := source.NewToken()
	entry := groupfiles.TrashPrefix + token + Suffix
	err = private.Rename(dirName, staging, entry)
	if vfs.InDoubt(err) {
		return manifestError("retract the manifest", err)
	}
	m.discardRetracted(staging, entry) // also after a repeated rename whose first reply was lost
	return manifestError("retract the manifest", groupfiles.IgnoreGone(err))
}

// discardRetracted removes a retracted manifest, or what was in its place. It does not follow a link.
func (m *Manifest) discardRetracted(staging vfs.Dir, entry string) {
	dir, err := staging.Enter(entry)
	if err != nil {
		_ = staging.Unlink(entry)
		return
	}
	_ = dir.Unlink(File) // first, for processes that are about to continue it
	_ = m.empty(dir)
	_ = dir.Close()
	_ = staging.Rmdir(entry)
}

// manifestError makes the caller try again if a directory was removed meanwhile.
func manifestError(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case vfs.Gone(err):
		return groupfiles.ErrAgain
	}
	return shareddir.OpError(op, "", err)
}
