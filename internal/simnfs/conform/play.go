package conform

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// Answer is the result of a step.
type Answer struct {
	Skipped  bool // nothing is open there, or other clients would not see the result at once
	Error    string
	Text     string // what was read, listed or described, except for the fields below
	Inode    uint64
	Handle   vfs.Handle
	Modified time.Time
	Changed  time.Time
}

func (a Answer) String() string {
	switch {
	case a.Skipped:
		return "(nothing is open)"
	case a.Error != "":
		return a.Error
	}
	times := ""
	if !a.Changed.IsZero() {
		times = fmt.Sprintf(" modified %s, changed %s", a.Modified.Format("05.000000"), a.Changed.Format("05.000000"))
	}
	return strings.TrimSpace(fmt.Sprintf("ok %s #%d %x%s", a.Text, a.Inode, string(a.Handle), times))
}

// Player is one client that executes its steps.
type Player struct {
	dirs  [dirs]vfs.Dir
	files [files]vfs.File
	plain [files]bool // its written data may not be on the server yet
}

// NewPlayer returns a player in a directory that was just opened. The player closes it.
func NewPlayer(root vfs.Dir) *Player { return &Player{dirs: [dirs]vfs.Dir{root}} }

// Close closes everything that is open.
func (p *Player) Close() {
	for i := range p.files {
		p.closeFile(i)
	}
	for _, dir := range p.dirs {
		if dir != nil {
			_ = dir.Close()
		}
	}
}

func (p *Player) closeFile(i int) {
	if p.files[i] != nil {
		_ = p.files[i].Close()
		p.files[i] = nil
	}
}

// Play executes step number i.
func (p *Player) Play(i int, s Step) (a Answer) {
	var err error
	file := p.files[s.File]
	switch s.Do {
	case "read", "write", "statfile", "filehandle", "close":
		if file == nil || s.Do == "write" && p.plain[s.File] {
			return Answer{Skipped: true}
		}
		err = p.useFile(i, s, file, &a)
	default:
		err = p.useDir(s, p.dir(s.Dir), &a)
	}
	if err != nil {
		a.Error = bare(err).Error()
	}
	return a
}

// dir returns the directory in a slot, or the main directory.
func (p *Player) dir(place int) vfs.Dir {
	if p.dirs[place] == nil {
		place = 0
	}
	return p.dirs[place]
}

// bare returns the system's error number in an error.
func bare(err error) error {
	if number := syscall.Errno(0); errors.As(err, &number) {
		return number
	}
	return err
}

func (p *Player) useFile(i int, s Step, file vfs.File, a *Answer) (err error) {
	switch s.Do {
	case "read":
		a.Text, err = content(file)
	case "write":
		_, err = fmt.Fprintf(file, "%d;", i)
	case "statfile":
		return describe(a, file.Stat)
	case "filehandle":
		a.Handle, err = file.Handle()
	case "close":
		p.files[s.File] = nil
		err = file.Close()
	}
	return err
}

func content(file vfs.File) (string, error) {
	text := make([]byte, 100)
	n, err := file.ReadAt(text, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(text[:n]), err
}

func (p *Player) useDir(s Step, dir vfs.Dir, a *Answer) (err error) {
	switch s.Do {
	case "mkdir":
		err = dir.Mkdir(s.Name, 0o755)
	case "rename":
		err = dir.Rename(s.Name, p.dir(s.To), s.NewName)
	case "unlink":
		err = dir.Unlink(s.Name)
	case "rmdir":
		err = dir.Rmdir(s.Name)
	case "touch":
		err = dir.Touch()
	case "touchfile":
		err = dir.TouchFile(s.Name)
	case "stat":
		err = describe(a, dir.Stat)
	case "statname":
		err = describe(a, func() (vfs.Info, error) { return dir.StatName(s.Name) })
	case "cached":
		err = describe(a, dir.StatCached)
	case "handle":
		a.Handle, err = dir.Handle(s.Name)
	case "list":
		a.Text, err = listed(dir)
	default:
		err = p.open(s, dir)
	}
	return err
}

// open replaces what is open in the step's slot.
func (p *Player) open(s Step, dir vfs.Dir) (err error) {
	var opened vfs.Dir
	var file vfs.File
	switch s.Do {
	case "opendir":
		opened, err = dir.OpenDir(s.Name)
	case "enter":
		opened, err = dir.Enter(s.Name)
	case "open":
		file, err = dir.Open(s.Name)
	case "make":
		file, err = dir.OpenDurable(s.Name, 0o644)
	case "append":
		file, err = dir.OpenAppendDurable(s.Name, 0o644)
	case "create":
		file, err = dir.Create(s.Name, 0o644)
	default:
		panic("no such call: " + s.Do)
	}
	if err != nil {
		return err
	}
	if file != nil {
		p.closeFile(s.File)
		p.files[s.File], p.plain[s.File] = file, s.Do == "create"
		return nil
	}
	if p.dirs[s.OpensDir] != nil {
		_ = p.dirs[s.OpensDir].Close()
	}
	p.dirs[s.OpensDir] = opened
	return nil
}

// listed returns the names in a directory. A hidden file has the same name for all clients.
func listed(dir vfs.Dir) (string, error) {
	var names []string
	err := dir.List(func(name string) bool {
		if strings.HasPrefix(name, ".nfs") {
			name = ".nfs"
		}
		names = append(names, name)
		return true
	})
	slices.Sort(names)
	return strings.Join(names, " "), err
}

func describe(a *Answer, stat func() (vfs.Info, error)) error {
	info, err := stat()
	if err != nil {
		return err
	}
	a.Inode, a.Modified, a.Changed = info.Inode, info.ModTime, info.ChangeTime
	if info.Mode.IsDir() {
		a.Text = fmt.Sprintf("directory, there: %v", info.Links > 0)
	} else {
		a.Text = fmt.Sprintf("file of %d bytes, %d links", info.Size, info.Links)
	}
	return nil
}

// Play makes clients execute a program, with a call of moment before each step, and closes what they have
// open.
func Play(program []Step, players []*Player, moment func()) (answers []Answer) {
	for i, s := range program {
		moment()
		answers = append(answers, players[s.Client].Play(i, s))
	}
	for _, p := range players {
		p.Close()
	}
	return answers
}
