package cloudshell

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// A value is what a service of ours has in the owner's attribute: words and
// fields, in printable ASCII, so that people can read it in the portal:
//
//	ml1;held;n=5f0c...;h=exec3;p=4711;...
//
// How long an attribute may be is not documented. Ours stay within 255 characters.
const (
	valueMark  = "ml1"
	valueLimit = 255
)

// The kinds of values.
const (
	kindHeld   = "held"
	kindFree   = "free"
	kindList   = "list"
	kindResult = "result"
)

// field is one key and what it says.
type field struct{ key, text string }

// encodeValue writes a value. Empty fields are left out.
func encodeValue(kind string, fields []field) string {
	var b strings.Builder
	b.WriteString(valueMark + ";" + kind)
	for _, f := range fields {
		if f.text != "" {
			b.WriteString(";" + f.key + "=" + escape(f.text))
		}
	}
	return b.String()
}

// escape writes what is not plain ASCII as a URL's query does, and leaves more of
// the rest readable than package url.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == ' ':
			b.WriteByte('+')
		case c <= ' ' || c > '~' || strings.IndexByte(`;%+=&<>"'`, c) >= 0:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// value is a value that was read.
type value struct {
	kind   string
	fields map[string]string
}

var errForeignValue = errors.New("its owner does not use multilock")

// parseValue reads a value of ours.
func parseValue(text string) (value, error) {
	words := strings.Split(text, ";")
	if words[0] != valueMark || len(words) < 2 {
		return value{}, errForeignValue
	}
	v := value{kind: words[1], fields: map[string]string{}}
	for _, word := range words[2:] {
		key, escaped, found := strings.Cut(word, "=")
		text, err := url.QueryUnescape(escaped)
		if _, twice := v.fields[key]; !found || err != nil || twice {
			return value{}, errors.New("its owner's value is damaged")
		}
		v.fields[key] = text
	}
	return v, nil
}

// brand tells reservations apart: a sandbox that was saved as a blueprint while
// something was locked begins with services that belong to another reservation.
func brand(reservation string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(strings.Trim(reservation, "{} "))))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

// The fields of more than one kind of value.
const (
	keyNonce  = "n" // an acquisition's token, or what makes a value unique
	keyBrand  = "r"
	keyResult = "x" // the id of the last committed result
)
