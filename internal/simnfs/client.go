package simnfs

import (
	"fmt"
	"io/fs"
	"maps"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// Request is one request of a client, before it is sent.
type Request struct {
	Kind    string // the call: mkdir, rename, stat, …
	Path    string
	Changes bool   // it changes something on the server
	Means   uint64 // which objects the client resolved names to since the last request
}

func (r Request) String() string { return r.Kind + " " + r.Path }

// Transport sends a request to the server. It may call execute once, never, more than once, or after
// it has returned. The caller gets Transport's error.
type Transport func(r Request, execute func() error) error

// Options are a client's mount options.
type Options struct {
	// MinAge and MaxAge limit how long cached data of a directory is valid. Without them only data of
	// the last request is.
	MinAge, MaxAge time.Duration
	// V4 is NFS version 4: a reply has attributes only of its object, not of the object's directory;
	// and an open file remains when another client removes it.
	V4 bool
	// Local means that only this kernel uses the directory.
	Local bool
	// Forgot is called before any cached data is used, and returns true to drop it, as a kernel may do at
	// any time. If nil, nothing is dropped.
	Forgot func() bool
	// Transport executes every request at once if nil.
	Transport Transport
}

// Client is the NFS client of one host. It implements vfs.FS, for the path "/" only.
type Client struct {
	server   *Server
	number   uint64
	made     uint64
	opt      Options
	dirs     map[*object]*memory
	seen     map[*object]vfs.Info // as described by the last reply
	before   map[*object]vfs.Info // and before a change by this client
	opens    map[*object]int
	uses     map[*object]int // of directories
	silly    map[*object]hidden
	hidden   int
	recalled int
	found    Sum // by its names, since the last request
}

// memory is a client's cache of a directory.
type memory struct {
	change uint64
	asked  time.Time
	age    time.Duration
	names  map[string]*object // nil for an absent name
}

// hidden is the name of a file that was removed while it was open.
type hidden struct {
	dir  *object
	name string
}

// Mount returns a new host's client.
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

// Number returns the client's number: the upper half of the inode numbers of what it creates.
func (c *Client) Number() uint64 { return c.number }

// create creates an object with a number that does not depend on other clients.
func (c *Client) create(mode fs.FileMode) *object {
	c.made++
	return c.server.create(c.number<<32|c.made, mode)
}

func (c *Client) ask(kind, path string, execute func() error) error {
	return c.opt.Transport(Request{Kind: kind, Path: path, Means: c.means()}, execute)
}

// finds records which object a name was resolved to in the current call.
func (c *Client) finds(found *object) {
	if c.found.Add(1); found != nil {
		c.found.Add(found.id)
	}
}

// means returns what was found for the next request.
func (c *Client) means() uint64 {
	found := c.found
	c.found = 0
	return uint64(found)
}

func (c *Client) tell(kind, path string, execute func() error) error {
	return c.tellOf(kind, path, nil, execute)
}

// tellOf is tell with the object that the client has found before the request.
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

// Unheard executes a request whose reply is lost: the client's cache does not change.
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

// gone returns the error for a handle of a removed object.
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

// learn processes a directory's attributes in a reply. If the directory has changed, all its cached
// names are dropped.
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

// told processes an object's attributes in a reply.
func (c *Client) told(o *object) {
	c.seen[o] = o.info()
	delete(c.before, o)
}

// did processes this client's own change of a directory. If before is still the cached state, the other
// cached names remain valid. The reply may lack the directory's times.
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

// recall returns the cached object of a name, if the cache is valid without a request.
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

// Recalled returns how often a name was found in the cache without a request.
func (c *Client) Recalled() int { return c.recalled }

// cached returns an object's attributes as this client has them.
func (c *Client) cached(o *object) vfs.Info {
	if _, known := c.seen[o]; !known || c.opt.Local {
		c.told(o)
	}
	if was, untold := c.before[o]; untold && !c.forgot() {
		return was
	}
	if c.forgot() {
		c.told(o) // it has requested them again
	}
	return c.seen[o]
}

// end returns where a client appends: the end of the file according to its cache.
func (c *Client) end(o *object) int64 { return c.cached(o).Size }

// forgot reports whether this client has dropped what it could have cached.
func (c *Client) forgot() bool { return c.opt.Forgot != nil && c.opt.Forgot() }

// find is executed on the server.
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

// hides reports whether a file must be hidden instead of removed.
func (c *Client) hides(file *object) bool {
	return !file.mode.IsDir() && c.opens[file] > 0 && !c.opt.Local && c.silly[file] == (hidden{}) && !c.forgot()
}

// hide renames a file that this client has open, instead of removing it. The request renames whatever has
// the name by then.
func (c *Client) hide(o *object, name string, file *object) {
	c.hidden++
	h := hidden{o, fmt.Sprintf(".nfs%016x%08x", file.id, c.hidden)}
	_ = c.server.rename(o, name, o, h.name, c) // both exist
	c.silly[file] = h
}

// closed ends one use of a file, and removes a hidden file after its last use.
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
