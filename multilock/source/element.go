package source

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxElement is the maximum length in bytes of the name of a lock or a group, for servers that use
// names as elements of a key.
const MaxElement = 500

// CheckElement checks whether a name can be an element of a key: it must be UTF-8 without a slash,
// which separates elements, and without a NUL byte. The error is an *InvalidError for the kind of
// name in what.
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

// CheckEnds rejects a name that begins or ends with a space or another invisible character, because
// it names another lock than the one that was meant. Sources do not call it, so that existing locks
// with such names can be inspected.
func CheckEnds(what, name string) error {
	first, _ := utf8.DecodeRuneInString(name)
	last, _ := utf8.DecodeLastRuneInString(name)
	for _, end := range []rune{first, last} {
		if unicode.IsSpace(end) || !unicode.IsGraphic(end) {
			return &InvalidError{What: what, Got: name, Why: "begins or ends with the invisible character " + strconv.QuoteRuneToASCII(end) +
				"; remove it (a file with CR LF at its line ends leaves one, and a variable with a space)"}
		}
	}
	return nil
}
