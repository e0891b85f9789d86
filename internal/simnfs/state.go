package simnfs

import (
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// Sum is a hash that grows with what is added to it, in order.
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

// State tells states of the server apart, in which texts read as the given function says. What
// has no name any more is in the states of the clients that can still come to it.
func (s *Server) State(label func(string) string) Sum {
	sum := s.root.state(label)
	if s.Forgets {
		sum.Add(uint64(s.ghosts)) // it may come back
	}
	for _, was := range s.saved {
		sum.Add(uint64(was.sum))
	}
	return sum
}

func (o *object) state(label func(string) string) Sum {
	var entries Sum
	sum := o.itself(label)
	for name, entry := range o.entries {
		one := entry.state(label)
		one.AddText(label(name))
		entries += one // in any order
	}
	sum.Add(uint64(entries))
	return sum
}

// itself is an object without its entries.
func (o *object) itself(label func(string) string) (sum Sum) {
	for _, number := range []uint64{o.id, uint64(o.mode), o.links, uint64(o.held)} { //nolint:gosec // a hash
		sum.Add(number)
	}
	sum.AddTime(o.modified)
	sum.AddTime(o.changed)
	if !o.mode.IsDir() {
		sum.AddText(label(string(o.content)))
	}
	return sum
}

// State tells states of a client apart: what it remembers, and what it has open. What it
// remembers of an object that has no name any more nobody asks for, unless it is open or
// remembered by a name: no object gets a name twice, but on a server that forgets.
func (c *Client) State(label func(string) string) Sum {
	var all Sum
	met := map[*object]bool{}
	for o, m := range c.dirs {
		if c.counts(o) {
			all += m.state(o, c.server.change(o), label)
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
			all += stateOf(o, 2, info)
		}
	}
	for o, info := range c.before {
		if c.counts(o) || met[o] {
			all += stateOf(o, 3, info)
		}
	}
	for o := range met {
		if o != nil && o.links == 0 {
			one := o.itself(label)
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

// counts says whether what is known of an object may matter.
func (c *Client) counts(o *object) bool {
	return o.links > 0 || c.server.Forgets || c.opens[o] > 0 || c.uses[o] > 0
}

func stateOf(o *object, kind uint64, info vfs.Info) Sum {
	sum := Sum(o.id)
	sum.Add(kind)
	sum.AddTime(info.ModTime)
	sum.AddTime(info.ChangeTime)
	sum.Add(info.Links)
	sum.Add(uint64(info.Size)) //nolint:gosec // a hash
	return sum
}

// StateOf tells states of something open apart: which object it is, and what may be done with it.
// It is false for what is not open here.
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

func (m *memory) state(of *object, change uint64, label func(string) string) Sum {
	sum, names := Sum(of.id), Sum(0)
	if m.change == change {
		sum.Add(1)
	}
	sum.AddTime(m.asked)
	sum.Add(uint64(m.age)) //nolint:gosec // a hash
	for name, found := range m.names {
		one := Sum(1)
		if found != nil {
			one.Add(found.id)
		}
		one.AddText(label(name))
		names += one
	}
	sum.Add(uint64(names))
	return sum
}
