//go:build !windows

package outfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/vfs"
)

// A path is resolved one element at a time, because the system would follow every link in it.

// maxLinks is how many links a path may have, as on Linux.
const maxLinks = 40

// way is a partly resolved path. It keeps the directories above the last one for "..".
type way struct {
	dirs  []vfs.Dir
	rest  []string // unresolved elements
	links int
	build bool // create missing directories
	obey  bool // reject directories that other users can have put there
	peek  bool // follow links of root or this user in any directory
}

// OpenDir opens the directory at path.
func OpenDir(path string) (Dir, error) { return open(path, false) }

// MakeDir opens the directory at path, and creates it with its parents if it is absent.
func MakeDir(path string) (Dir, error) { return open(path, true) }

func open(path string, build bool) (Dir, error) {
	w := way{build: build}
	defer w.close()
	err := w.begin(path)
	for err == nil && len(w.rest) > 0 {
		err = w.step()
	}
	if err != nil {
		return Dir{}, err
	}
	return w.arrive()
}

// find opens the directory of the file at path, and returns the file's name in it. That entry is not a
// link to follow, except in /proc.
func find(path string) (dir Dir, name string, err error) { return way{}.find(path) }

func (w way) find(path string) (dir Dir, name string, err error) {
	defer w.close()
	err = w.begin(path)
	for err == nil && len(w.rest) > 0 {
		if name = w.rest[0]; len(w.rest) > 1 || name == "." || name == ".." {
			err = w.step()
			continue
		}
		target, refusal := w.link(name)
		if target == "" || refusal != nil || (Dir{Dir: w.here()}).inProc() {
			dir, err = w.arrive()
			return dir, name, err
		}
		w.rest = nil
		err = w.follow(target)
	}
	if err == nil {
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	}
	return Dir{}, "", err
}

// begin starts at the root directory or the current directory.
func (w *way) begin(path string) error {
	if path == "" {
		return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
	}
	start := "."
	if filepath.IsAbs(path) {
		start = "/"
	}
	dir, err := vfs.OS{}.OpenDir(start)
	if err != nil {
		return err
	}
	w.close()
	w.dirs, w.rest = []vfs.Dir{dir}, append(elements(path), w.rest...)
	return nil
}

// elements splits a path. A trailing slash becomes the element ".".
func elements(path string) []string {
	var all []string
	for e := range strings.SplitSeq(path, "/") {
		if e != "" {
			all = append(all, e)
		}
	}
	if strings.HasSuffix(path, "/") {
		all = append(all, ".")
	}
	return all
}

func (w *way) here() vfs.Dir { return w.dirs[len(w.dirs)-1] }

// step resolves one element.
func (w *way) step() error {
	name := w.rest[0]
	w.rest = w.rest[1:]
	switch name {
	case ".":
		return nil
	case "..":
		return w.up()
	}
	dir, err := w.enter(name)
	if err == nil {
		w.dirs = append(w.dirs, dir)
		return nil
	}
	target, refusal := w.link(name)
	switch {
	case target == "":
		return err
	case refusal != nil:
		return refusal
	}
	return w.follow(target)
}

func (w *way) enter(name string) (vfs.Dir, error) {
	dir, err := w.here().Enter(name)
	if err == nil && w.obey {
		if err = w.leads(dir); err != nil {
			return nil, errors.Join(err, dir.Close())
		}
	}
	if !w.build || !vfs.Is(err, syscall.ENOENT) {
		return dir, err
	}
	return shareddir.OpenDir(w.here(), name, shareddir.Entered)
}

// leads returns why a directory may not be the one that the user meant.
func (w *way) leads(to vfs.Dir) error {
	here, err := newDir(w.here())
	if err != nil {
		return err
	}
	info, err := to.StatCached()
	if err == nil {
		err = here.look.Leads(info)
	}
	if err != nil {
		return here.refuse(filepath.Base(to.Path()), "root does not run commands that other users can have written: %w; move it to a directory that no other user can write to, or pass it on the standard input", err)
	}
	return nil
}

// up goes to the parent directory: the one that was passed, or the system's.
func (w *way) up() error {
	if len(w.dirs) > 1 {
		_ = w.here().Close()
		w.dirs = w.dirs[:len(w.dirs)-1]
		return nil
	}
	above, err := vfs.OS{}.OpenDir(w.here().Path() + "/..")
	if err != nil {
		return err
	}
	w.close()
	w.dirs = []vfs.Dir{above}
	return nil
}

// link returns the target of the entry name if it is a link, and why the link is not followed.
func (w *way) link(name string) (target string, refusal error) {
	target, err := readLink(w.here(), name)
	if err != nil {
		return "", nil //nolint:nilerr // not a link, or gone
	}
	here, err := newDir(w.here())
	if err == nil {
		err = here.look.Exclusive()
	}
	if err != nil && (!w.peek || !here.isOurs(name)) {
		return target, here.explain(name, syscall.ELOOP)
	}
	return target, nil
}

// isOurs reports whether a link was created by root or this user, and has no other name: any user
// can create a hard link to it. In Kubernetes any user may write to a volume's directory, and root's
// links lead to the files.
func (d Dir) isOurs(name string) bool {
	info, err := d.StatName(name)
	info.Mode &^= fs.ModeSymlink
	return err == nil && d.look.Admit(info) == nil
}

// follow continues at the target of a link.
func (w *way) follow(target string) error {
	w.links++
	if w.links > maxLinks {
		return &fs.PathError{Op: "open", Path: target, Err: syscall.ELOOP}
	}
	if filepath.IsAbs(target) {
		return w.begin(target)
	}
	w.rest = append(elements(target), w.rest...)
	return nil
}

// arrive returns the last directory.
func (w *way) arrive() (Dir, error) {
	dir, err := newDir(w.here())
	if err == nil {
		w.dirs = w.dirs[:len(w.dirs)-1]
	}
	return dir, err
}

func (w *way) close() {
	for _, dir := range w.dirs {
		_ = dir.Close()
	}
	w.dirs = nil
}
