package source

import (
	"strings"
	"unicode"

	"github.com/multilock/go/multilock/process"
)

// Limits of texts for users in bytes, so that a record does not outgrow what sources read.
const (
	MaxCommand = 4 << 10
	MaxUser    = 256
	MaxWhy     = 4 << 10
	maxName    = 1 << 10 // no source allows longer names
)

// Bounded returns the holder with texts of limited length.
func (h Holder) Bounded() Holder {
	h.Identity = boundedIdentity(h.Identity)
	h.Command, h.User = Shorten(h.Command, MaxCommand), Shorten(h.User, MaxUser)
	h.Every = Shorten(h.Every, MaxUser)
	h.Batch = h.Batch.change(func(text string) string { return Shorten(text, MaxUser) })
	return h
}

func boundedIdentity(i process.Identity) process.Identity {
	for _, text := range []*string{&i.Host, &i.Machine, &i.Boot, &i.Namespace} {
		*text = Shorten(*text, MaxUser)
	}
	return i
}

// Printable returns the holder without unprintable characters: see Printable.
func (h Holder) Printable() Holder {
	h.Host, h.User, h.Command, h.Every = Printable(h.Host), Printable(h.User), Printable(h.Command), Printable(h.Every)
	h.Batch = h.Batch.change(Printable)
	return h
}

// Bounded returns the result with texts of limited length.
func (r Result) Bounded() Result {
	r.Token, r.By.Host, r.Signal = Shorten(r.Token, MaxUser), Shorten(r.By.Host, MaxUser), Shorten(r.Signal, MaxUser)
	r.Command, r.User = Shorten(r.Command, MaxCommand), Shorten(r.User, MaxUser)
	r.Why, r.Output, r.Every = Shorten(r.Why, MaxWhy), Shorten(r.Output, MaxWhy), Shorten(r.Every, MaxUser)
	r.Chunk = r.Chunk.bounded()
	return r
}

// Bounded returns the event with texts of limited length.
func (e Event) Bounded() Event {
	e.What, e.Name, e.By = EventKind(Shorten(string(e.What), MaxUser)), Shorten(e.Name, maxName), boundedIdentity(e.By)
	e.Token, e.Signal = Shorten(e.Token, MaxUser), Shorten(e.Signal, MaxUser)
	e.Command, e.User = Shorten(e.Command, MaxCommand), Shorten(e.User, MaxUser)
	e.Why, e.Output = Shorten(e.Why, MaxWhy), Shorten(e.Output, MaxWhy)
	if e.Holder != nil {
		holder := e.Holder.Bounded()
		e.Holder = &holder
	}
	return e
}

// Printable returns the result without unprintable characters: see Printable.
func (r Result) Printable() Result {
	for _, text := range []*string{&r.Token, &r.By.Host, &r.User, &r.Command, &r.Signal, &r.Why, &r.Output, &r.Every} {
		*text = Printable(*text)
	}
	r.Chunk = r.Chunk.printable()
	return r
}

// Shorten cuts a text to limit bytes, or three if that is more, between two characters, and marks
// the cut with dots.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const more = "..."
	return strings.ToValidUTF8(s[:max(limit-len(more), 0)], "") + more
}

// Printable replaces unprintable characters. It keeps the writer of a record from sending control
// sequences to the terminals of its readers.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
