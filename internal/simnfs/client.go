package simnfs

import (
	"fmt"
	"io/fs"
	"maps"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// Request is one request of a client, as it is about to be sent.
type Request struct {
	Kind    string // the system's call: mkdir, rename, stat, …
	Path    string
	Changes bool   // it changes something on the server
	Means   uint64 // what the client takes names for, by what it knew before the request
}

func (r Request) String() string { return r.Kind + " " + r.Path }

// Transport brings a request to the server: it calls execute once, or not at all, or more
// often, or after it has returned, and its answer is the caller's.
type Transport func(r Request, execute func() error) error

// Options are how a client has the directory mounted.
type Options struct {
	// MinAge and MaxAge bound for how long what was told of a directory is believed.
	// Without them only what was asked just now is.
	MinAge, MaxAge time.Duration
	// V4 is NFS version 4: a reply tells of what it was asked for alone, not of the directory
	// in which that was done; and what is open stays when another client removes it.
	V4 bool
	// Local is a directory that this kernel has to itself.
	Local bool
	// Forgot is asked before anything that is remembered is used, and says whether it has
	// been forgotten, as it may be at any time; nil: never.
	Forgot func() bool
	// Transport carries every request out at once if nil.
	Transport Transport
}

// Client is the kernel of one host. It implements vfs.FS, for the one path "/".
type Client struct {
	server   *Server
	number   uint64
	made     uint64
	opt      Options
	dirs     map[*object]*memory
	seen     map[*object]vfs.Info // as the last reply described it
	before   map[*object]vfs.Info // and as it was described before a change by this client
	opens    map[*object]int
	uses     map[*object]int // of directories
	silly    map[*object]hidden
	hidden   int
	recalled int
	found    Sum // by its names, since the last request
}

// memory is what a client remembers of a directory.
type memory struct {
	change uint64
	asked  time.Time
	age    time.Duration
	names  map[string]*object // nil: there is none
}

// hidden is the name of a file that was removed while it was open.
type hidden struct {
	dir  *object
	name string
}

// Mount is a new host's client.
func (s *Server) Mount(opt Options) *Client {
	if opt.Transport == nil {
		opt.Transport = func(_ Request, execute func() error) error { return execute() }
	}
	s.mounts++
	return &Client{server: s, number: s.mounts, opt: opt, dirs: map[*object]*memory{}, seen: map[*object]vfs.Info{}, before: map[*object]vfs.Info{}, opens: map[*object]int{}, uses: map[*object]int{}, silly: map[*object]hidden{}}
}

// OpenDir implements vfs.FS.
func (c *Client) OpenDir(path string) (vfs.Dir, error) {
	if path != "/" {
		return nil, failed("open", path, syscall.ENOENT)
	}
	c.learn(c.server.root)
	return (&dir{client: c, object: c.server.root, path: "/"}).used(), nil
}

// Number is the client's own: what it makes has it in the upper half of its inode.
func (c *Client) Number() uint64 { return c.number }

// create makes what has a number that does not depend on what others make.
func (c *Client) create(mode fs.FileMode) *object {
	c.made++
	return c.server.create(c.number<<32|c.made, mode)
}

func (c *Client) ask(kind, path string, execute func() error) error {
	return c.opt.Transport(Request{Kind: kind, Path: path, Means: c.means()}, execute)
}

// finds notes what a name is taken for in the call that is under way.
func (c *Client) finds(found *object) {
	if c.found.Add(1); found != nil {
		c.found.Add(found.id)
	}
}

// means is what was found for the next request.
func (c *Client) means() uint64 {
	found := c.found
	c.found = 0
	return uint64(found)
}

func (c *Client) tell(kind, path string, execute func() error) error {
	return c.tellOf(kind, path, nil, execute)
}

// tellOf is tell for what the client has found before it sends the request.
func (c *Client) tellOf(kind, path string, found *object, execute func() error) error {
	if found != nil {
		c.finds(found)
	}
	r := Request{Kind: kind, Path: path, Changes: true, Means: c.means()}
	return c.opt.Transport(r, func() error {
		c.server.save()
		return execute()
	})
}

// Unheard carries a request out whose reply the client does not get: what it remembers stays.
func (c *Client) Unheard(execute func() error) error {
	seen, before, dirs := maps.Clone(c.seen), maps.Clone(c.before), map[*object]*memory{}
	for o, m := range c.dirs {
		was := *m
		was.names = maps.Clone(m.names)
		dirs[o] = &was
	}
	err := execute()
	c.seen, c.before, c.dirs = seen, before, dirs
	return err
}

// gone is what is said of a handle to what has no name any more.
func (c *Client) gone(o *object) error {
	switch {
	case o.links > 0, o.held > 0 && !c.forgot():
		return nil
	case c.opt.Local, o.remover == c && !c.forgot():
		return syscall.ENOENT
	}
	return syscall.ESTALE
}

func (c *Client) memory(o *object) *memory {
	m := c.dirs[o]
	if m == nil {
		m = &memory{names: map[string]*object{}}
		c.dirs[o] = m
	}
	return m
}

// learn takes in what a reply says of a directory: if it has changed, all names in it are
// forgotten.
func (c *Client) learn(o *object) {
	m, change := c.memory(o), c.server.change(o)
	if m.change != change || m.asked.IsZero() {
		m.names, m.age = map[string]*object{}, c.opt.MinAge
	} else if time.Since(m.asked) > m.age {
		m.age = min(2*m.age, c.opt.MaxAge)
	}
	m.change, m.asked = change, time.Now()
	c.told(o)
}

// told takes in what a reply says of an object.
func (c *Client) told(o *object) {
	c.seen[o] = o.info()
	delete(c.before, o)
}

// did takes in a change by this client itself, of a directory that was as before: what else
// is remembered of it stays true. Its times the reply may not tell.
func (c *Client) did(o *object, before uint64, name string, now *object) {
	m, was := c.memory(o), c.cached(o)
	if m.change != before {
		c.learn(o)
	}
	m.change, m.asked = c.server.change(o), time.Now()
	m.names[name] = now
	c.told(o)
	if c.opt.V4 {
		c.before[o] = was
	}
	if now != nil && now.mode.IsDir() {
		c.learn(now)
	}
}

// recall is what is remembered of a name, if that may be believed without a request.
func (c *Client) recall(o *object, name string) (found *object, known bool) {
	m := c.memory(o)
	found, known = m.names[name]
	if !known || c.opt.Local || m.asked.IsZero() || time.Since(m.asked) >= m.age {
		return nil, false
	}
	if c.forgot() {
		delete(m.names, name)
		return nil, false
	}
	c.recalled++
	c.finds(found)
	return found, true
}

// Recalled is how often a name was found without a request, because what is remembered of it was not old.
func (c *Client) Recalled() int { return c.recalled }

// cached describes an object as this client knows it.
func (c *Client) cached(o *object) vfs.Info {
	if _, known := c.seen[o]; !known || c.opt.Local {
		c.told(o)
	}
	if was, untold := c.before[o]; untold && !c.forgot() {
		return was
	}
	if c.forgot() {
		c.told(o) // it has been asked for again
	}
	return c.seen[o]
}

// end is where a client appends: where the file ends as far as it knows.
func (c *Client) end(o *object) int64 { return c.cached(o).Size }

// forgot is whether this client has forgotten what it could remember.
func (c *Client) forgot() bool { return c.opt.Forgot != nil && c.opt.Forgot() }

// find is carried out on the server.
func (c *Client) find(o *object, name string) (*object, error) {
	if err := c.gone(o); err != nil {
		return nil, err
	}
	m := c.memory(o)
	if !c.opt.V4 || m.asked.IsZero() || c.forgot() {
		c.learn(o)
	}
	found, known := m.names[name]
	if !known || c.opt.V4 || c.server.Tick == 0 || (found != nil && found.links == 0) {
		found = o.entries[name]
		m.names[name] = found
	}
	if found != nil && found.mode.IsDir() {
		c.learn(found)
	}
	return found, nil
}

// hides says that a file is to be hidden instead of being removed.
func (c *Client) hides(file *object) bool {
	return !file.mode.IsDir() && c.opens[file] > 0 && !c.opt.Local && c.silly[file] == (hidden{}) && !c.forgot()
}

// hide gives a file that this client has open another name, instead of removing it: whatever
// has the name by now is renamed.
func (c *Client) hide(o *object, name string, file *object) {
	c.hidden++
	h := hidden{o, fmt.Sprintf(".nfs%016x%08x", file.id, c.hidden)}
	_ = c.server.rename(o, name, o, h.name, c) // both are there
	c.silly[file] = h
}

// closed ends one use of a file, and removes what was hidden with the last.
func (c *Client) closed(file *object) {
	if c.opt.V4 && !file.mode.IsDir() {
		file.held--
	}
	if c.opens[file]--; c.opens[file] > 0 {
		return
	}
	delete(c.opens, file)
	h, hidden := c.silly[file]
	if !hidden || h.dir.entries[h.name] != file {
		return
	}
	delete(c.silly, file)
	before := c.server.change(h.dir)
	delete(h.dir.entries, h.name)
	c.server.remove(file, c)
	c.server.touch(h.dir)
	c.did(h.dir, before, h.name, nil)
}
