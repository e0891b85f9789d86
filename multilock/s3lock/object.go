package s3lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"unicode/utf8"

	"github.com/multilock/go/multilock/source/remote"
)

// object is what an object that is written conditionally has inside.
type object struct {
	Version int `json:"v"`
	// Revision grows with every write. Its low bits are random, so that an object that was removed by
	// hand does not repeat one.
	Revision int64 `json:"revision"`
	// Write is a token of the last write, by which its writer finds out that it was carried out.
	Write string `json:"write"`
	// Recent has the beginnings of the tokens before, by which a writer finds out the same when another
	// write has followed.
	Recent  []string          `json:"recent,omitempty"`
	Results int64             `json:"results,omitempty"` // how often the result was changed
	Fields  map[string]*entry `json:"fields,omitempty"`
}

// entry is a field of an object. A value that is no text is in Bytes.
type entry struct {
	Created int64  `json:"created"`
	Changed int64  `json:"changed"`
	Version int64  `json:"n"`
	Beats   int64  `json:"beats,omitempty"`
	Text    string `json:"text,omitempty"`
	Bytes   []byte `json:"bytes,omitempty"`
}

const (
	formatVersion = 1
	randomBits    = 20
	maxRecent     = 32
	// The size of an object, modulo sizes, reports in listings what it has: a holder (or a value), a
	// result, and how often the result was changed.
	sizes     = 256
	heldBit   = 1
	resultBit = 2
	resultsAt = 4
)

var errForeign = errors.New("an object is in the way that this multilock has not made, or a newer one: remove it, or use another prefix")

// decode reads an object; no text is one that was never written.
func decode(text []byte) (o object, err error) {
	if text == nil {
		return o, nil
	}
	if json.Unmarshal(text, &o) != nil || o.Version != formatVersion || o.Revision <= 0 {
		return o, errForeign
	}
	for _, e := range o.Fields {
		if e == nil {
			return o, errForeign
		}
	}
	return o, nil
}

// encode returns the object as JSON, with spaces behind it for the size.
func (o object) encode() []byte {
	o.Version = formatVersion
	text, _ := json.Marshal(o) // cannot fail: only texts and numbers
	missing := (o.state() - len(text)%sizes + sizes) % sizes
	return append(text, bytes.Repeat([]byte{' '}, missing)...)
}

// state is what a listing reports: see sizes.
func (o object) state() (state int) {
	if o.Fields[lockField] != nil || o.Fields[valueField] != nil {
		state |= heldBit
	}
	if o.Fields[resultField] != nil {
		state |= resultBit
	}
	return state + int(o.Results%(sizes/resultsAt))*resultsAt
}

// next returns a copy with a larger revision, for a write with a token.
func (o object) next(token string) object {
	o.Revision = (o.Revision>>randomBits+1)<<randomBits | rand.Int64N(1<<randomBits) //nolint:gosec // a unique number, no secret
	if o.Write != "" {
		o.Recent = append(slices.Clone(o.Recent[max(0, len(o.Recent)-maxRecent+1):]), beginning(o.Write))
	}
	o.Write = token
	fields := map[string]*entry{}
	for name, e := range o.Fields {
		own := *e
		fields[name] = &own
	}
	o.Fields = fields
	return o
}

func beginning(token string) string { return token[:min(len(token), 8)] }

// mayHave reports whether a write with a token, which was to replace an object of a revision, may have
// been carried out, and been replaced since: it is among the recent ones, or they do not go back that far.
func (o object) mayHave(token string, revision int64) bool {
	writes := o.Revision>>randomBits - revision>>randomBits
	if writes < 0 || writes > int64(len(o.Recent))+1 {
		return true
	}
	return slices.Contains(o.Recent, beginning(token))
}

// put changes a field, and reports whether that changed the object. The object is one from next.
func (o *object) put(name string, w remote.Write) (changed bool) {
	e := o.Fields[name]
	switch {
	case w.Beat > 0:
		if e == nil || e.Created != w.Beat {
			return false
		}
		e.Beats++
		return true
	case w.Value == nil && e == nil:
		return false
	case w.Value == nil:
		delete(o.Fields, name)
	default:
		if e == nil {
			e = &entry{Created: o.Revision}
			o.Fields[name] = e
		}
		e.Changed = o.Revision
		e.Version++
		if e.Text, e.Bytes = "", nil; utf8.Valid(w.Value) {
			e.Text = string(w.Value)
		} else {
			e.Bytes = w.Value
		}
	}
	if name == resultField {
		o.Results++
	}
	return true
}

func (e *entry) value() []byte {
	if e.Bytes != nil {
		return e.Bytes
	}
	return []byte(e.Text)
}

// holds reports whether a condition on a field holds. A missing field has the number 0.
func (o object) holds(name string, c remote.Cond) bool {
	e := o.Fields[name]
	if e == nil {
		e = &entry{}
	}
	switch c.Field {
	case remote.IfAbsent:
		return e.Created == 0
	case remote.IfExists:
		return e.Created != 0
	case remote.IfCreated:
		return e.Created == c.Number
	case remote.IfChanged:
		return e.Changed == c.Number
	case remote.IfValue:
		return e.Created != 0 && bytes.Equal(e.value(), c.Value)
	case remote.IfSilent:
		return e.Beats == c.Number
	}
	return true // IfFirst: waiters poll, and have no order
}
