package source

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxElement is the longest name of a lock or a group, in bytes, on a server that keeps them
// as elements of a key.
const MaxElement = 500

// CheckElement says whether a name can be an element of such a key: UTF-8 without a slash,
// which separates them, and without a NUL byte. The error is an *InvalidError, and says what
// the name was to be.
func CheckElement(what, name string) error {
	var why string
	switch {
	case name == "":
		why = "must not be empty"
	case strings.Contains(name, "/"):
		why = "must not contain a slash; use -g for the group"
	case strings.ContainsRune(name, 0):
		why = "must not contain a NUL byte"
	case !utf8.ValidString(name):
		why = "is not valid UTF-8"
	case len(name) > MaxElement:
		why = fmt.Sprintf("is %d bytes long; at most %d fit", len(name), MaxElement)
	default:
		return nil
	}
	return &InvalidError{What: what, Got: name, Why: why}
}
