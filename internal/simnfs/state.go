package simnfs

import (
	"time"
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

// State tells states of the server apart, in which texts read as the given function says.
func (s *Server) State(label func(string) string) Sum {
	sum := s.root.state(label)
	sum.Add(uint64(s.ghosts))
	for _, was := range s.saved {
		sum.Add(uint64(was.sum))
	}
	return sum
}

func (o *object) state(label func(string) string) Sum {
	var sum, entries Sum
	sum.Add(o.id)
	sum.Add(uint64(o.mode))
	sum.Add(o.links)
	sum.AddTime(o.modified)
	sum.AddTime(o.changed)
	sum.AddText(label(string(o.content)))
	for name, entry := range o.entries {
		one := entry.state(label)
		one.AddText(label(name))
		entries += one // in any order
	}
	sum.Add(uint64(entries))
	return sum
}

// State tells states of a client apart: what it remembers, and what it has open.
func (c *Client) State(label func(string) string) Sum {
	var all Sum
	for o, m := range c.dirs {
		all += m.state(o, c.server.change(o), label)
	}
	for o, info := range c.seen {
		one := Sum(o.id)
		one.AddTime(info.ModTime)
		one.AddTime(info.ChangeTime)
		one.Add(info.Links)
		one.Add(uint64(info.Size)) //nolint:gosec // a hash
		all += one
	}
	for o, info := range c.before {
		one := Sum(o.id)
		one.AddTime(info.ChangeTime)
		one.Add(info.Links)
		all += one
	}
	for o, uses := range c.opens {
		one := Sum(o.id)
		one.Add(uint64(uses))   //nolint:gosec // a hash
		one.Add(uint64(o.held)) //nolint:gosec // a hash
		one.AddText(c.silly[o].name)
		all += one
	}
	all.Add(uint64(c.hidden)) //nolint:gosec // a hash
	return all
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
