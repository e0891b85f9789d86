package shareddir

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// A mark keeps what the test found: an empty directory in .multilock whose name says
// it all, so that a source that is opened needs one look by name.
//
// What was found holds for one file system as one host has it mounted: what keeps the
// rules there is as much the client as the server. So each host that has not tried
// tries, and what is behind FUSE or the network is named by its mount: all that is FUSE
// has one number.

// markPrefix is how the names of all marks begin.
const markPrefix = "fs-"

// suffix is how the name of a mark ends.
func (t Traits) suffix() string {
	suffix := ".refuses"
	if t.Replaces {
		suffix = ".replaces"
	}
	if t.Grain > 0 {
		suffix += fmt.Sprintf("-%ds", t.Grain/time.Second)
	}
	if t.ByPath {
		suffix += "-by-path"
	}
	return suffix
}

// possible are all Traits that a mark can tell of, the usual ones first.
func (b *Base) possible() (all []Traits) {
	for _, byPath := range []bool{false, true} {
		for _, grain := range []time.Duration{0, time.Second, Coarsest} {
			all = append(all, Traits{true, grain, byPath}, Traits{false, grain, byPath})
		}
		if b.Kind.Local || b.Kind.NFS {
			break
		}
	}
	return all
}

// findMark looks for what an earlier test has found. Only marks of mounts that are over are
// removed, so one that an NFS client remembers is there.
func (b *Base) findMark(private vfs.Dir, name markName) (Traits, bool) {
	for _, t := range b.possible() {
		if mark, err := private.Enter(name.of(t)); err == nil {
			_ = mark.Close()
			return t, true
		}
	}
	return Traits{}, false
}

func putMark(private vfs.Dir, name markName, found Traits) error {
	err := private.Mkdir(name.of(found), DirMode)
	if err != nil && !vfs.Is(err, syscall.EEXIST) {
		return opError("note the result of the filesystem's test", err)
	}
	removeOutdated(private, name, found)
	return nil
}

// outdated is how much older than its successor's the mark of a mount is when it is removed:
// containers of one host may have a mount each at the same place.
const outdated = 24 * time.Hour

// removeOutdated removes the marks of mounts that were there before. What stays is in nobody's
// way, and a mark that is missing costs a test.
func removeOutdated(private vfs.Dir, name markName, found Traits) {
	if name.life == "" {
		return
	}
	own, err := private.StatName(name.of(found))
	if err != nil {
		return
	}
	marks, _ := Names(private.List, name.sameplace)
	for _, mark := range marks {
		if info, err := private.StatName(mark); err == nil && own.ModTime.Sub(info.ModTime) > outdated {
			_ = private.Rmdir(mark)
		}
	}
}

// markName is how the name of a mark begins.
type markName struct {
	place string // for all mounts of one filesystem at one place of a host
	life  string // "" if they are not told apart
}

func (n markName) of(t Traits) string {
	if n.life == "" {
		return n.place + t.suffix()
	}
	return n.place + "-" + n.life + t.suffix()
}

// sameplace says whether an entry is a mark of this mount, or of another one in its place.
func (n markName) sameplace(entry string) bool {
	return strings.HasPrefix(entry, n.place+".") || strings.HasPrefix(entry, n.place+"-")
}

// markName is that of this source's marks. The table of mounts is read only where the type of
// a file system does not say what it is.
func (b *Base) markName() markName {
	var m mount
	if !b.Kind.Local {
		m, _ = mountOf(b.Dir) // its type has to do then
	}
	return markOf(b.Kind, m, b.self)
}

// markOf names a file system, as a host has it mounted. Containers may have a name each
// and no machine id; what they have in common with their host, and keep until it is
// rebooted, is its boot: there are not to be more marks than that. Below FUSE each mount is
// a client of its own, and may be with SMB: see alone. What follows the rules there is a
// program, with options that no table shows: so each FUSE mount is tested.
func markOf(kind vfs.FileSystem, m mount, host process.Identity) markName {
	about := []string{kind.Type, m.kind, m.from, cmp.Or(host.Machine, host.Boot, host.Host)}
	fuse := strings.HasPrefix(m.kind, "fuse")
	if fuse || m.pathNamed() {
		about = append(about, m.point)
	}
	name := markName{place: fmt.Sprintf("%s%s-%x", markPrefix, plain(cmp.Or(m.kind, kind.Type)), hashOf(about...)[:6])}
	if fuse && m.life != "" {
		name.life = fmt.Sprintf("%x", hashOf(host.Boot, m.life)[:4])
	}
	return name
}

func hashOf(texts ...string) []byte {
	hash := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hash[:]
}

// plain is a type of file system as a part of a name.
func plain(kind string) string {
	return strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.') {
			return r
		}
		return '_'
	}, source.Shorten(kind, 32))
}
