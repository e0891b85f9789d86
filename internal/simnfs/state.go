package simnfs

import (
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// Sum is an incremental hash of an ordered sequence.
type Sum uint64

// Add adds a number.
func (s *Sum) Add(v uint64) {
	h := uint64(*s) ^ (v + 0x9e3779b97f4a7c15 + uint64(*s)<<6 + uint64(*s)>>2)
	h *= 0xff51afd7ed558ccd
	*s = Sum(h ^ h>>29)
}

// AddText adds a text.
func (s *Sum) AddText(text string) {
	s.Add(uint64(len(text)))
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	s.Add(h)
}

// AddTime adds a time.
func (s *Sum) AddTime(t time.Time) { s.Add(uint64(t.UnixNano())) } //nolint:gosec // a hash

// View defines which states count as equal.
type View struct {
	// Label converts a text.
	Label func(string) string
	// Now makes times relative to it; if zero they are absolute. All times before Old count as equal then.
	Now, Old time.Time
	// Ages reports, by the path at which an object was created, whether any process reads its times other
	// than right after changing it; if nil, of all objects. For other objects it only counts whether
	// the times are equal to Just.
	Ages func(made string) bool
	// Ident replaces an object's number; if nil, the number stays.
	Ident func(id uint64) uint64
	// Just is the server's current time.
	Just time.Time
}

// times adds the times of an object, as known to a client or the server.
func (v View) times(sum *Sum, o *object, info vfs.Info) {
	if !v.Now.IsZero() && v.Ages != nil && !v.Ages(o.made) {
		for _, t := range []time.Time{info.ModTime, info.ChangeTime} {
			if t.Equal(v.Just) {
				sum.Add(1)
			} else {
				sum.Add(0)
			}
		}
		return
	}
	v.Time(sum, info.ModTime)
	v.Time(sum, info.ChangeTime)
}

// Time adds a time to a sum.
func (v View) Time(sum *Sum, t time.Time) {
	switch {
	case v.Now.IsZero():
		sum.AddTime(t)
	case t.Before(v.Old):
		sum.Add(1)
	default:
		sum.Add(uint64(v.Now.Sub(t))) //nolint:gosec // a hash
	}
}

// State returns a hash of the server's state. Objects without a name are part of the states of the clients
// that can still reach them.
func (s *Server) State(v View) Sum {
	sum := s.Named(v)
	if s.Forgets {
		sum.Add(uint64(s.ghosts)) // it may come back
	}
	for _, was := range s.saved {
		sum.Add(uint64(was.sum))
	}
	return sum
}

// Named returns a hash of all objects with a name on the server.
func (s *Server) Named(v View) Sum { return s.root.state(v) }

func (o *object) state(v View) Sum {
	var entries Sum
	sum := o.itself(v)
	for name, entry := range o.entries {
		one := entry.state(v)
		one.AddText(v.Label(name))
		entries += one // in any order
	}
	sum.Add(uint64(entries))
	return sum
}

// itself hashes an object without its entries.
func (o *object) itself(v View) (sum Sum) {
	id := o.id
	if v.Ident != nil {
		id = v.Ident(id)
	}
	for _, number := range []uint64{id, uint64(o.mode), o.links, uint64(o.held)} { //nolint:gosec // a hash
		sum.Add(number)
	}
	v.times(&sum, o, vfs.Info{ModTime: o.modified, ChangeTime: o.changed})
	if !o.mode.IsDir() {
		sum.AddText(v.Label(string(o.content)))
	}
	return sum
}

// State returns a hash of the client's state: what it has cached, and what it has open. The cached data of
// an object without a name is not used any more, unless the object is open or cached by a name: no object
// gets a name again, except on a server that forgets changes.
func (c *Client) State(v View) Sum {
	var all Sum
	met := map[*object]bool{}
	for o, m := range c.dirs {
		if c.counts(o) {
			all += c.remembers(o, m, v)
			for _, found := range m.names {
				met[found] = true
			}
		}
	}
	for o := range c.opens {
		met[o] = true
	}
	for o := range c.uses {
		met[o] = true
	}
	for o, info := range c.seen {
		if c.counts(o) || met[o] {
			all += stateOf(o, 2, info, v)
		}
	}
	for o, info := range c.before {
		if c.counts(o) || met[o] {
			all += stateOf(o, 3, info, v)
		}
	}
	for o := range met {
		if o != nil && o.links == 0 {
			one := o.itself(v)
			if o.remover == c {
				one.Add(1)
			}
			all += one
		}
	}
	for o, uses := range c.opens {
		one := Sum(o.id)
		one.Add(uint64(uses)) //nolint:gosec // a hash
		one.AddText(c.silly[o].name)
		all += one
	}
	all.Add(uint64(c.hidden)) //nolint:gosec // a hash
	return all
}

// counts reports whether cached data of an object may matter.
func (c *Client) counts(o *object) bool {
	return o.links > 0 || c.server.Forgets || c.opens[o] > 0 || c.uses[o] > 0
}

func stateOf(o *object, kind uint64, info vfs.Info, v View) Sum {
	sum := Sum(o.id)
	sum.Add(kind)
	v.times(&sum, o, info)
	sum.Add(info.Links)
	sum.Add(uint64(info.Size)) //nolint:gosec // a hash
	return sum
}

// StateOf returns a hash of an open file or directory: its object, and the permitted calls. ok is false if
// it was not opened here.
func StateOf(opened any) (Sum, bool) {
	var o *object
	var rest []bool
	var offset int64
	switch opened := opened.(type) {
	case *dir:
		o, rest = opened.object, []bool{opened.searches, opened.closed}
	case *file:
		o, rest, offset = opened.object, []bool{opened.writes, opened.appends, opened.closed}, opened.offset
	default:
		return 0, false
	}
	sum := Sum(o.id)
	sum.Add(uint64(offset)) //nolint:gosec // a hash
	for _, is := range rest {
		sum.Add(0)
		if is {
			sum.Add(1)
		}
	}
	return sum, true
}

// remembers returns a hash of a client's cache of a directory.
func (c *Client) remembers(of *object, m *memory, v View) Sum {
	sum, names := Sum(of.id), Sum(0)
	same := m.change == c.server.change(of)
	if same {
		sum.Add(1)
	}
	if !m.since(&sum, v) && !same && !c.server.Forgets {
		return sum // it is not valid, and will be dropped after the next request for the directory
	}
	sum.Add(uint64(m.age)) //nolint:gosec // a hash
	for name, found := range m.names {
		one := Sum(1)
		if found != nil {
			one.Add(found.id)
		}
		one.AddText(v.Label(name))
		names += one
	}
	sum.Add(uint64(names))
	return sum
}

// since adds how long ago the directory's attributes were requested, and reports whether cached names may
// still be valid: beyond the maximum age the time makes no difference.
func (m *memory) since(sum *Sum, v View) (believed bool) {
	if v.Now.IsZero() || m.asked.IsZero() {
		sum.AddTime(m.asked)
		return true
	}
	since := min(v.Now.Sub(m.asked), m.age+1)
	sum.Add(uint64(since)) //nolint:gosec // a hash
	return since < m.age
}

// Opened returns a hash of what a client has open.
func (c *Client) Opened() (all Sum) {
	for o, uses := range c.opens {
		one := Sum(o.id)
		one.Add(uint64(uses)) //nolint:gosec // a hash
		all += one
	}
	return all
}
