package mongolock

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/source"
)

// maxName is the longest name of a lock or a group, in bytes.
const maxName = 500

// separator stands between group and name in an _id. Neither can have one.
const separator = "/"

// CheckName says whether name can be the name of a lock or a group: it is UTF-8,
// and has no slash, which separates the two in an _id.
func CheckName(name string) error { return checkElement("lock name", name) }

func checkElement(what, name string) error {
	var why string
	switch {
	case name == "":
		why = "must not be empty"
	case strings.Contains(name, separator):
		why = "must not contain a slash; use -g for the group"
	case strings.ContainsRune(name, 0):
		why = "must not contain a NUL byte"
	case !utf8.ValidString(name):
		why = "is not valid UTF-8, as MongoDB needs it"
	case len(name) > maxName:
		why = fmt.Sprintf("is %d bytes long; at most %d fit", len(name), maxName)
	default:
		return nil
	}
	return &source.InvalidError{What: what, Got: name, Why: why}
}

// id is the _id of a lock. In the default group it is the name.
func (s *Source) id(name string) string {
	if s.group == "" {
		return name
	}
	return s.group + separator + name
}

// nameOf is the name of the lock with this _id; ok is false for what cannot be a
// lock of the group.
func (s *Source) nameOf(id bson.RawValue) (name string, ok bool) {
	text, ok := id.StringValueOK()
	if !ok {
		return "", false
	}
	if s.group != "" {
		if text, ok = strings.CutPrefix(text, s.group+separator); !ok {
			return "", false
		}
	}
	return text, CheckName(text) == nil
}

// ofGroup is the filter for the documents of the group. null also finds those
// without the field.
func (s *Source) ofGroup(more ...bson.E) bson.D {
	group := bson.E{Key: groupField}
	if s.group != "" {
		group.Value = s.group
	}
	return append(bson.D{group}, more...)
}
