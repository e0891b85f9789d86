package simnfs

import (
	"maps"
	"slices"
	"time"
)

// saved is the state of all objects before the first change at a time.
type saved struct {
	at      time.Time
	objects map[*object]object
	sum     Sum
}

// save saves the state before the first change at each of the last two times.
func (s *Server) save() {
	if !s.Forgets || s.root == nil || s.saved[1].at.Equal(s.now()) {
		return
	}
	now := saved{at: s.now(), objects: map[*object]object{}, sum: s.root.state(View{Label: func(text string) string { return text[:min(len(text), 1)] }})}
	now.keep(s.root)
	s.saved[0], s.saved[1] = s.saved[1], now
}

func (s *saved) keep(o *object) {
	copied := *o
	copied.entries, copied.content = maps.Clone(o.entries), slices.Clone(o.content)
	s.objects[o] = copied
	for _, entry := range o.entries {
		s.keep(entry)
	}
}

// Forget is a crash of a server with an async export: it reverts the changes of the last two times at which
// anything changed. Objects created since then are gone, with their handles.
func (s *Server) Forget() {
	to := s.saved[0]
	if to.objects == nil {
		return
	}
	now := saved{objects: map[*object]object{}}
	now.keep(s.root)
	for o := range now.objects {
		if _, kept := to.objects[o]; !kept {
			o.links, o.remover = 0, nil
		}
	}
	for o, was := range to.objects {
		was.entries, was.content = maps.Clone(was.entries), slices.Clone(was.content)
		was.most = o.most
		*o = was
	}
	s.saved[1] = to
}
