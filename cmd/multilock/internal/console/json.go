package console

import (
	"bytes"
	"fmt"
	"strings"
)

// Schema is the version of the --json output. It changes when a field is changed or removed, not when
// one is added.
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

// Message is a message with --json.
type Message struct {
	Level   string `json:"level"` // info, warning or error
	Message string `json:"message"`
	Exit    *int   `json:"exit,omitempty"` // only for the error that ends multilock
	Lock    any    `json:"lock,omitempty"` // the lock that is held
}

// messageOf recognises a warning by its prefix.
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

// AsksForJSON guesses whether a command line asks for JSON without parsing its options, for messages
// about a command line that cannot be parsed.
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
