package simnfs

import (
	"fmt"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// Request is one request of a client, as it is about to be sent.
type Request struct {
	Kind    string // the system's call: mkdir, rename, stat, …
	Path    string
	Changes bool // it changes something on the server
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
	// Local is a directory that this kernel has to itself.
	Local bool
	// Transport carries every request out at once if nil.
	Transport Transport
}

// Client is the kernel of one host. It implements vfs.FS, for the one path "/".
type Client struct {
	server *Server
	opt    Options
	dirs   map[*object]*memory
	seen   map[*object]vfs.Info // as the last reply described it
	opens  map[*object]int
	silly  map[*object]hidden
	hides  int
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
	return &Client{server: s, opt: opt, dirs: map[*object]*memory{}, seen: map[*object]vfs.Info{}, opens: map[*object]int{}, silly: map[*object]hidden{}}
}

// OpenDir implements vfs.FS.
func (c *Client) OpenDir(path string) (vfs.Dir, error) {
	if path != "/" {
		return nil, failed("open", path, syscall.ENOENT)
	}
	return &dir{client: c, object: c.server.root, path: "/"}, nil
}

func (c *Client) ask(kind, path string, execute func() error) error {
	return c.opt.Transport(Request{kind, path, false}, execute)
}

func (c *Client) tell(kind, path string, execute func() error) error {
	return c.opt.Transport(Request{kind, path, true}, execute)
}

// gone is what is said of a handle to what has no name any more.
func (c *Client) gone(o *object) error {
	switch {
	case o.links > 0:
		return nil
	case o.remover == c || c.opt.Local:
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
	c.seen[o] = o.info()
}

// did takes in a change by this client itself, of a directory that was as before: what else
// is remembered of it stays true.
func (c *Client) did(o *object, before uint64, name string, now *object) {
	m := c.memory(o)
	if m.change != before {
		c.learn(o)
	}
	m.change, m.asked = c.server.change(o), time.Now()
	m.names[name] = now
	c.seen[o] = o.info()
	if now != nil {
		c.seen[now] = now.info()
	}
}

// recall is what is remembered of a name, if that may be believed without a request.
func (c *Client) recall(o *object, name string) (found *object, known bool) {
	m := c.memory(o)
	found, known = m.names[name]
	return found, known && !c.opt.Local && !m.asked.IsZero() && time.Since(m.asked) < m.age
}

// lookup finds a name, on the server only if it is not remembered. What is remembered for
// too long counts if the directory is as it was.
func (c *Client) lookup(o *object, name, path string) (*object, error) {
	found, known := c.recall(o, name)
	if !known {
		err := c.ask("lookup", path, func() (err error) {
			found, err = c.find(o, name)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if found == nil {
		return nil, syscall.ENOENT
	}
	return found, nil
}

// cached describes an object as this client knows it.
func (c *Client) cached(o *object) vfs.Info {
	if _, known := c.seen[o]; !known || c.opt.Local {
		c.seen[o] = o.info()
	}
	return c.seen[o]
}

// find is carried out on the server.
func (c *Client) find(o *object, name string) (*object, error) {
	if err := c.gone(o); err != nil {
		return nil, err
	}
	c.learn(o)
	m := c.memory(o)
	found, known := m.names[name]
	if !known || c.server.Tick == 0 || (found != nil && found.links == 0) {
		found = o.entries[name]
		m.names[name] = found
	}
	return found, nil
}

// hide gives a file that this client has open another name, instead of removing it.
func (c *Client) hide(o *object, name string, file *object) {
	c.hides++
	h := hidden{o, fmt.Sprintf(".nfs%016x%08x", file.id, c.hides)}
	_ = c.server.rename(o, name, o, h.name, c) // both are there
	c.silly[file] = h
}

// closed ends one use of a file, and removes what was hidden with the last.
func (c *Client) closed(file *object) {
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
