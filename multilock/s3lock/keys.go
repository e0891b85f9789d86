package s3lock

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/multilock/go/multilock/source"
)

// A key of the table is KIND/GROUP/NAME, after queue/GROUP/NAME/ if it belongs to a queue. Objects
// are named after keys. Those of one lock, its result and the mark of a breaker are fields of one
// object, which is named after the lock.

// field is the place of a table's entry: a field of an object that is written conditionally, or a
// whole object that is written once.
type field struct {
	object string // "" for an entry that a bucket does not have
	name   string // of the field; "" for a whole object
}

const (
	lockField   = "lock"
	resultField = "result"
	valueField  = "value" // of an object with a single field
)

// cut splits a key into what is before its kind, the kind, and the rest.
func cut(key string) (before, kind, rest string) {
	parts := strings.SplitN(key, "/", 5)
	if parts[0] == "queue" && len(parts) > 3 {
		before = strings.Join(parts[:3], "/") + "/"
		key = key[len(before):]
	}
	kind, rest, _ = strings.Cut(key, "/")
	return before, kind, rest
}

// fieldOf returns the place of a key's entry.
func fieldOf(key string) field {
	before, kind, rest := cut(key)
	switch kind {
	case "lock", "result", "broke":
		return field{escape(before + "lock/" + rest), kind}
	case "life", "wait", "changes":
		return field{}
	case "register", "doctor":
		return field{escape(key), valueField}
	case "manifest", "day":
		if _, name, _ := strings.Cut(rest, "/"); name == "list" || name == "now" {
			return field{escape(key), valueField}
		}
	}
	return field{escape(key), ""}
}

// longest bounds an object's name, with the prefix: S3 allows 1024 bytes.
const longest = 1000

// checkName rejects names that are too long for an object.
func (s *server) checkName(object string) error {
	if n := len(s.at.prefix) + len(object); n > longest {
		return &source.InvalidError{What: "name", Got: object, Why: fmt.Sprintf("with its group and the prefix it needs %d bytes as the name of an object, of at most %d; all but letters, digits, dots, dashes and underscores need three", n, longest)}
	}
	return nil
}

// widest bounds an element of an object's name, because some stores keep objects in files.
const widest = 200

// escape returns the name of the object of a key. Only letters, digits, dots, dashes and underscores
// are kept; dots not at the beginning. An empty element is "=", and a long one is continued after
// "+/".
func escape(key string) string {
	elements := strings.Split(key, "/")
	for i, element := range elements {
		var b strings.Builder
		for j, c := range []byte(element) {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' && j > 0 {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "=%02X", c)
			}
		}
		text, whole := b.String(), ""
		for ; len(text) > widest; text = text[widest:] {
			whole += text[:widest] + "+/"
		}
		if elements[i] = whole + text; element == "" && i < len(elements)-1 {
			elements[i] = "="
		}
	}
	return strings.Join(elements, "/")
}

// unescape returns the key of an object; ok is false if it is not one that escape returns.
func unescape(object string) (key string, ok bool) {
	elements := strings.Split(strings.ReplaceAll(object, "+/", ""), "/")
	for i, element := range elements {
		if element == "=" {
			elements[i] = ""
			continue
		}
		text, err := url.PathUnescape(strings.ReplaceAll(element, "=", "%"))
		if err != nil {
			return "", false
		}
		elements[i] = text
	}
	key = strings.Join(elements, "/")
	return key, escape(key) == object
}
