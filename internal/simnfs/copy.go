package simnfs

import (
	"slices"
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// copies maps objects and clients to their copies.
type copies struct {
	objects map[*object]*object
	clients map[*Client]*Client
	server  *Server
}

// Copy returns a copy of the server with another clock, and of its clients with other transports. Files that
// a client has open remain open, without an owner. The state that Forget returns to is not copied.
func (s *Server) Copy(clock func() time.Time, clients []*Client, transports []Transport) (*Server, []*Client) {
	copied := *s
	c := copies{map[*object]*object{}, map[*Client]*Client{}, &copied}
	all := make([]*Client, len(clients))
	for i, old := range clients {
		if all[i] = c.clients[old]; all[i] != nil {
			continue
		}
		all[i] = &Client{server: &copied, number: old.number, made: old.made, opt: old.opt, hidden: old.hidden}
		all[i].opt.Transport = transports[i]
		c.clients[old] = all[i]
	}
	copied.Clock, copied.saved = clock, [2]saved{}
	copied.root, copied.pins = c.object(s.root), nil
	for _, o := range s.pins {
		copied.pins = append(copied.pins, c.object(o))
	}
	for old, made := range c.clients {
		c.client(old, made)
	}
	return &copied, all
}

// object copies an object, and everything in it.
func (c *copies) object(o *object) *object {
	if o == nil {
		return nil
	}
	if known := c.objects[o]; known != nil {
		return known
	}
	copied := *o
	c.objects[o] = &copied
	copied.server, copied.content, copied.remover = c.server, slices.Clone(o.content), c.clients[o.remover]
	if o.entries != nil {
		copied.entries = make(map[string]*object, len(o.entries))
		for name, entry := range o.entries {
			copied.entries[name] = c.object(entry)
		}
	}
	return &copied
}

func (c *copies) client(from, to *Client) {
	to.dirs = make(map[*object]*memory, len(from.dirs))
	for o, m := range from.dirs {
		copied := *m
		copied.names = make(map[string]*object, len(m.names))
		for name, found := range m.names {
			copied.names[name] = c.object(found)
		}
		to.dirs[c.object(o)] = &copied
	}
	to.seen, to.before = ofObjects(c, from.seen), ofObjects(c, from.before)
	to.opens, to.uses = ofObjects(c, from.opens), ofObjects(c, from.uses)
	to.silly = map[*object]hidden{}
	for o, h := range from.silly {
		to.silly[c.object(o)] = hidden{c.object(h.dir), h.name}
	}
}

func ofObjects[V int | vfs.Info](c *copies, all map[*object]V) map[*object]V {
	copied := make(map[*object]V, len(all))
	for o, v := range all {
		copied[c.object(o)] = v
	}
	return copied
}
