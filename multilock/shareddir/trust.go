package shareddir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// Trust names the users whose files are trusted in a directory that several users can write. Files of
// root, of the process's own user, and of the directory's group are trusted in any case.
//
// The directory has a group in this sense if it has the set-group-ID bit, its group may write to it, and
// its owner is trusted or the process is in that group. Any other user can do nothing there, unless a
// trusted user permits it.
//
// The zero value adds no users.
type Trust struct {
	// Anybody trusts every user who can write there. Even then nothing outside of the base directory is
	// touched.
	Anybody bool
	// Users are the IDs of further trusted users.
	Users []uint32
}

// circle is who is trusted in one base directory.
type circle struct {
	anybody  bool
	users    []uint32 // whom to trust, with root and ourselves
	declared bool     // so is everybody in the group
	group    uint32
	mine     uint32 // a group that nobody else is in, if it is not 0

	// alias is the user that the file server makes of this one (it may make nobody of
	// root, or somebody of everybody): the owner of what is made here. Nobody asks for it
	// as long as all owners are known.
	alias func() (uint32, bool)
}

// newCircle finds out who is trusted below a directory; probe says whose the files are
// that this process makes there.
func newCircle(trust Trust, base vfs.Info, probe func() (uint32, error)) *circle {
	uid, gid := id(os.Geteuid()), id(os.Getegid())
	c := &circle{anybody: trust.Anybody, users: append([]uint32{0, uid}, trust.Users...)}
	if uid == gid {
		c.mine = gid
	}
	c.alias = sync.OnceValues(func() (uint32, bool) {
		uid, err := probe()
		return uid, err == nil
	})
	const shared = fs.ModeSetgid | 0o020
	if base.Mode&shared == shared && (c.knows(base.UID) || inGroup(base.GID)) {
		c.declared, c.group = true, base.GID
	}
	return c
}

// id is a user's or a group's: the system call has no negative ones here.
func id(n int) uint32 { return uint32(n) } //nolint:gosec // see above

func inGroup(gid uint32) bool {
	groups, _ := os.Getgroups() // without them there is the effective one
	return slices.Contains(append(groups, os.Getegid()), int(gid))
}

// knows says whether a user is trusted by himself.
func (c *circle) knows(uid uint32) bool {
	if slices.Contains(c.users, uid) {
		return true
	}
	alias, ok := c.alias()
	return ok && alias == uid
}

// onlyOurs reports whether root and this user are the only trusted users.
func (c *circle) onlyOurs() bool {
	own := c.users[:2] // root and this user come first
	others := slices.ContainsFunc(c.users, func(uid uint32) bool { return !slices.Contains(own, uid) })
	return !c.anybody && !others && (!c.declared || c.mine != 0 && c.group == c.mine)
}

// Refusal says why something in a base directory is not used. It unwraps to the number
// with which the system itself would have kept the caller from it.
type Refusal struct {
	Why    string
	Advice string // what to do about it
	number syscall.Errno
}

func (r *Refusal) Error() string { return r.Why }

// Unwrap is EACCES, or ENXIO for what is no file.
func (r *Refusal) Unwrap() error { return r.number }

func refuse(why, advice string) error { return &Refusal{why, advice, syscall.EACCES} }

// admit is the rule for all that is opened below a base directory.
func (c *circle) admit(info vfs.Info, appended bool) error {
	dir := info.Mode.IsDir()
	switch {
	case !dir && !IsRegular(info):
		return &Refusal{"it is not a regular file", "find out which user made it, and remove it", syscall.ENXIO}
	case appended && info.Links > 1:
		return refuse("it has another name elsewhere (a hard link), so it is not written to", "find out which user made that, and remove it here")
	case c.anybody:
		return nil
	case (!c.declared || info.GID != c.group) && !c.knows(info.UID):
		return refuse("it belongs to "+userName(info.UID)+", which is not trusted here",
			fmt.Sprintf("if you trust that user, use --trust %d; otherwise remove it, or use another directory", info.UID))
	case dir:
		return c.exclusive(info)
	}
	return nil
}

// exclusive says why a directory may be written by somebody who is not trusted.
func (c *circle) exclusive(info vfs.Info) error {
	switch {
	case info.Mode&0o002 != 0:
		return refuse("all users can write to it", "remove that right (chmod o-w); if several users share it, give it to a group "+
			"(chgrp GROUP, chmod 2775); or trust all users: --trust any")
	case info.Mode&0o020 == 0, c.declared && info.GID == c.group, c.mine != 0 && info.GID == c.mine:
		return nil
	}
	return refuse("group "+groupName(info.GID)+" may write to it, and is not trusted here",
		"declare that the group shares it (chmod g+s on the base directory, and the same group and chmod g+ws below it), or remove its right to write (chmod g-w)")
}

// adviceOn is what to do about a refusal, "" if err is none.
func adviceOn(err error) string {
	var r *Refusal
	if !errors.As(err, &r) {
		return ""
	}
	return r.Advice
}

// invalid makes of a refused directory what can be said of the base.
func (c *circle) invalid(path string, err error) error {
	return &source.InvalidError{What: "base directory", Got: path, Why: err.Error() + ": " + adviceOn(err), Err: err}
}

// whom lists who is trusted, for people.
func (c *circle) whom() string {
	if c.anybody {
		return "all users that can write here (--trust any)"
	}
	var names []string
	for i, uid := range c.users {
		if slices.Index(c.users, uid) == i {
			names = append(names, userName(uid))
		}
	}
	if c.declared {
		return strings.Join(names, ", ") + " and group " + groupName(c.group) + ", which owns the base directory"
	}
	return strings.Join(names, " and ") + " only"
}

func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username + " (uid " + number + ")"
	}
	return "uid " + number
}

func groupName(gid uint32) string {
	number := strconv.FormatUint(uint64(gid), 10)
	if g, err := user.LookupGroupId(number); err == nil {
		return g.Name + " (gid " + number + ")"
	}
	return "gid " + number
}

// rules are those for all that is opened and made below a base directory: others may
// write as far as they may to the base itself, and members of a group that was declared
// whatever the umask.
func (c *circle) rules(base vfs.Info) vfs.Rules {
	r := vfs.Rules{Admit: c.admit, Drop: 0o022 &^ base.Mode}
	if c.declared {
		r.Keep = base.Mode & 0o070
	}
	return r
}

// ownerHere is the user whose the files are that this process makes in a directory. The
// descriptor tells: the name may be another's by now.
func ownerHere(dir vfs.Dir) (uint32, error) {
	name := ".multilock-probe-" + source.NewToken()
	f, err := dir.Create(name, 0o600)
	if err != nil {
		return 0, err
	}
	info, err := f.StatCached()
	return info.UID, errors.Join(err, f.Close(), dir.Unlink(name))
}
