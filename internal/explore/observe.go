package explore

import (
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// The next action of an actor depends on the answers it has received, and on their times. So all results
// of vfs calls are added to a hash, by observed and observedFile.

// OpenDir implements vfs.FS.
func (a *Actor) OpenDir(path string) (vfs.Dir, error) {
	opened, err := a.Client.OpenDir(path)
	return a.observeDir(opened, err)
}

// learn adds an error and the time to the hash, and returns the error.
func (a *Actor) learn(err error) error {
	a.learns(time.Now())
	if err == nil {
		a.learnt.Add(0)
		return nil
	}
	if number := syscall.Errno(0); errors.As(err, &number) {
		a.learnt.Add(uint64(number))
	} else {
		a.learnt.AddText(err.Error())
	}
	return err
}

func (a *Actor) learnInfo(info vfs.Info, err error) (vfs.Info, error) {
	a.learns(info.ModTime)
	a.learns(info.ChangeTime)
	for _, number := range []uint64{info.Inode, info.Links, uint64(info.Size), uint64(info.Mode)} { //nolint:gosec // a hash
		a.learnt.Add(number)
	}
	return info, a.learn(err)
}

func (a *Actor) learnText(text string, err error) error {
	a.learnt.AddText(a.world.labelled(text))
	return a.learn(err)
}

func (a *Actor) observeDir(opened vfs.Dir, err error) (vfs.Dir, error) {
	if a.learn(err) != nil {
		return nil, err
	}
	_, _ = a.learnInfo(opened.StatCached())
	return &observed{opened, a}, nil
}

func (a *Actor) observeFile(opened vfs.File, err error) (vfs.File, error) {
	if a.learn(err) != nil {
		return nil, err
	}
	return &observedFile{opened, a}, nil
}

// observed is a directory.
type observed struct {
	vfs.Dir
	actor *Actor
}

func (o *observed) OpenDir(name string) (vfs.Dir, error) {
	return o.actor.observeDir(o.Dir.OpenDir(name))
}
func (o *observed) Enter(name string) (vfs.Dir, error) { return o.actor.observeDir(o.Dir.Enter(name)) }
func (o *observed) Open(name string) (vfs.File, error) { return o.actor.observeFile(o.Dir.Open(name)) }

func (o *observed) Create(name string, mode uint32) (vfs.File, error) {
	return o.actor.observeFile(o.Dir.Create(name, mode))
}

func (o *observed) OpenAppend(name string, mode uint32) (vfs.File, error) {
	return o.actor.observeFile(o.Dir.OpenAppend(name, mode))
}

func (o *observed) OpenDurable(name string, mode uint32) (vfs.File, error) {
	return o.actor.observeFile(o.Dir.OpenDurable(name, mode))
}

func (o *observed) OpenAppendDurable(name string, mode uint32) (vfs.File, error) {
	return o.actor.observeFile(o.Dir.OpenAppendDurable(name, mode))
}

func (o *observed) Mkdir(name string, mode uint32) error {
	return o.actor.learn(o.Dir.Mkdir(name, mode))
}
func (o *observed) Unlink(name string) error    { return o.actor.learn(o.Dir.Unlink(name)) }
func (o *observed) Rmdir(name string) error     { return o.actor.learn(o.Dir.Rmdir(name)) }
func (o *observed) Touch() error                { return o.actor.learn(o.Dir.Touch()) }
func (o *observed) TouchFile(name string) error { return o.actor.learn(o.Dir.TouchFile(name)) }

func (o *observed) Rename(oldname string, to vfs.Dir, newname string) error {
	return o.actor.learn(o.Dir.Rename(oldname, to, newname))
}

func (o *observed) Stat() (vfs.Info, error)       { return o.actor.learnInfo(o.Dir.Stat()) }
func (o *observed) StatCached() (vfs.Info, error) { return o.actor.learnInfo(o.Dir.StatCached()) }

func (o *observed) StatName(name string) (vfs.Info, error) {
	return o.actor.learnInfo(o.Dir.StatName(name))
}

func (o *observed) Handle(name string) (vfs.Handle, error) {
	handle, err := o.Dir.Handle(name)
	return handle, o.actor.learnText(string(handle), err)
}

func (o *observed) List(visit func(name string) bool) error { return o.listed(o.Dir.List, visit) }

func (o *observed) ListFiles(visit func(name string) bool) error {
	return o.listed(o.Dir.ListFiles, visit)
}

func (o *observed) listed(list func(func(string) bool) error, visit func(string) bool) error {
	var names []string
	err := list(func(name string) bool { names = append(names, name); return true })
	err = o.actor.learnText(strings.Join(names, "/"), err)
	for _, name := range names {
		if !visit(name) {
			break
		}
	}
	return err
}

// observedFile is a file.
type observedFile struct {
	vfs.File
	actor *Actor
}

func (o *observedFile) Read(p []byte) (int, error) {
	n, err := o.File.Read(p)
	return n, o.actor.learnText(string(p[:n]), err)
}

func (o *observedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := o.File.ReadAt(p, off)
	return n, o.actor.learnText(string(p[:n]), err)
}

func (o *observedFile) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	return n, o.actor.learn(err)
}

func (o *observedFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := o.File.WriteAt(p, off)
	return n, o.actor.learn(err)
}

func (o *observedFile) Stat() (vfs.Info, error)       { return o.actor.learnInfo(o.File.Stat()) }
func (o *observedFile) StatCached() (vfs.Info, error) { return o.actor.learnInfo(o.File.StatCached()) }

func (o *observedFile) Handle() (vfs.Handle, error) {
	handle, err := o.File.Handle()
	return handle, o.actor.learnText(string(handle), err)
}
