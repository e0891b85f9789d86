package console

import (
	"bytes"
	"fmt"
	"strings"
)

// Schema is the version of all that --json prints. It grows when a field changes or goes, not
// when one is added.
const Schema = 1

// Stamped puts the version in front of the other fields of a JSON object.
func Stamped(object []byte) []byte {
	rest, ok := bytes.CutPrefix(object, []byte("{"))
	if !ok {
		return object
	}
	blank := rest[:len(rest)-len(bytes.TrimLeft(rest, " \n"))]
	comma := ","
	if bytes.HasPrefix(rest[len(blank):], []byte("}")) {
		comma = ""
	}
	separator := ":"
	if len(blank) > 0 {
		separator = ": "
	}
	return fmt.Appendf(nil, `{%s"schema"%s%d%s%s`, blank, separator, Schema, comma, rest)
}

// Message is what is said with --json.
type Message struct {
	Level   string `json:"level"` // info, warning or error
	Message string `json:"message"`
	Exit    *int   `json:"exit,omitempty"` // of an error with which multilock ends
	Lock    any    `json:"lock,omitempty"` // who is in the way
}

// messageOf tells a warning by its first word.
func messageOf(text string) Message {
	if warning, ok := strings.CutPrefix(text, "warning: "); ok {
		return Message{Level: "warning", Message: warning}
	}
	return Message{Level: "info", Message: text}
}

// SayObject writes an object as a line of JSON on the standard error.
func (e *Env) SayObject(object any) {
	if text, err := Lossless(object, ""); err == nil {
		e.Tell(string(Escaped(Stamped(text))) + "\n")
	}
}

// AsksForJSON says whether a command line does that, as far as one can tell without knowing
// its options: for what is said about one that cannot be understood.
func AsksForJSON(args []string) bool {
	for _, arg := range args {
		switch strings.TrimLeft(arg, "-") {
		case "":
			if arg == "--" {
				return false
			}
		case "json", "json=true", "json=1":
			if strings.HasPrefix(arg, "-") {
				return true
			}
		}
	}
	return false
}
