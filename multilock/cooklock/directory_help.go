package cooklock

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// trashSuffix marks what is being taken apart in the staging directory.
const trashSuffix = ".trash"

// help makes the value that follows an epoch's the next public epoch: it empties
// and removes live, and only then renames next. In that order nobody can follow in
// this epoch any more when the name next becomes free: the source of any rename to
// it had to be in live, which never comes back. Anybody may do it, and as often as
// they like.
func (r *root) help(e *epoch) error {
	if _, err := r.successor(e); err != nil {
		return r.retireIfGone(e, err)
	}
	if err := r.closeLive(e); err != nil {
		return err
	}
	err := e.Rename(nextDir, r.Dir, epochName(e.number+1))
	if err != nil && !vfs.Gone(err) && !vfs.NotEmpty(err) {
		return err
	}
	return r.retire(e)
}

// retireIfGone is for an epoch without a next: either nobody follows yet, or the
// next one is public.
func (r *root) retireIfGone(e *epoch, err error) error {
	if !vfs.Gone(err) {
		return err
	}
	return r.retire(e)
}

// closeLive takes out of live what is in it, and removes it. Others may put in
// more meanwhile. It moves what it finds, and removes nothing in its place: an NFS
// client that remembers live/TOKEN from before it became next would remove the
// file of the newest value. The server renames by the names that it has itself.
func (r *root) closeLive(e *epoch) error {
	for range maxRounds {
		if err := r.emptyOut(e); err != nil {
			return err
		}
		err := e.Rmdir(liveDir) // the only answer that counts: a look may come from a cache
		if err == nil || vfs.Gone(err) {
			return nil
		}
		if !vfs.NotEmpty(err) {
			return err
		}
	}
	return errors.New("others keep putting their values into " + e.Path() + "/" + liveDir)
}

func (r *root) emptyOut(e *epoch) error {
	live, err := r.place.fresh(e.Dir, liveDir)
	if err != nil {
		return ignoreGone(err)
	}
	defer live.Close() //nolint:errcheck // a directory
	names, err := live.List()
	if err != nil {
		return ignoreGone(err)
	}
	for _, name := range names {
		if err := moveAway(live, name, r.staging); err != nil && !vfs.Gone(err) {
			return err
		}
	}
	return nil
}

// retire takes the name from an epoch whose successor is public.
func (r *root) retire(e *epoch) error {
	after, err := r.open(e.number + 1)
	if err != nil {
		return ignoreGone(err)
	}
	_ = after.Close()
	return ignoreGone(moveAway(r.Dir, epochName(e.number), r.staging))
}

// moveAway removes the directory name of parent, with what is in it, by moving it
// first to where nobody looks for it. The error is that of the move; what cannot be
// removed afterwards is swept later.
func moveAway(parent vfs.Dir, name string, staging vfs.Dir) error {
	token, err := newToken()
	if err != nil {
		return err
	}
	if err := parent.Rename(name, staging, token+trashSuffix); err != nil {
		return err
	}
	_ = removeTree(staging, token+trashSuffix)
	return nil
}

// removeTree removes a file or a directory that nobody else needs any more.
func removeTree(parent vfs.Dir, name string) error {
	dir, err := parent.OpenDir(name)
	if vfs.Is(err, syscall.ENOTDIR, syscall.ELOOP) {
		return parent.Unlink(name)
	}
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // a directory
	names, err := dir.List()
	if err != nil {
		return err
	}
	for _, below := range names {
		if err := removeTree(dir, below); err != nil && !vfs.Gone(err) {
			return err
		}
	}
	return parent.Rmdir(name)
}

// leftoverAge is the age at which what is being prepared counts as left behind. A
// process that stood still for that long finds nothing, and begins anew.
const leftoverAge = 24 * time.Hour

// tidy removes what crashes left: epochs before one that is to be seen, and old
// things in the staging directory. The clock is the file system's: the age of each
// is the time until that epoch was written. What cannot be removed stays.
func (r *root) tidy() {
	numbers, err := r.epochs()
	if err != nil || len(numbers) == 0 {
		return
	}
	public := slices.Max(numbers)
	for _, n := range numbers {
		if n < public {
			_ = moveAway(r.Dir, epochName(n), r.staging)
		}
	}
	now, err := r.StatName(epochName(public))
	if err != nil {
		return
	}
	names, err := r.staging.List()
	if err != nil {
		return
	}
	for _, name := range names {
		info, err := r.staging.StatName(name)
		if err == nil && now.ModTime.Sub(info.ModTime) > leftoverAge {
			sweep(r.staging, name)
		}
	}
}

// sweep takes a leftover away from whoever may still know its name, and removes it.
func sweep(staging vfs.Dir, name string) {
	if strings.HasSuffix(name, trashSuffix) {
		_ = removeTree(staging, name)
		return
	}
	_ = moveAway(staging, name, staging)
}

func ignoreGone(err error) error {
	if vfs.Gone(err) {
		return nil
	}
	return err
}
