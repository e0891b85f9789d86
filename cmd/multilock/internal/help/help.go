// Package help has the texts that are shown on request: each command on one screen (-h), and
// the topics of "multilock help". They are files, so that they can be read and changed as they
// will be seen. What a command says with --help is with the command.
package help

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

//go:embed short/*.txt topics/*.txt
var texts embed.FS

// Program and First are shown as if they were commands: of the program as a whole, and to who
// has typed nothing but its name.
const (
	Program = "multilock"
	First   = "first"
)

// Short is a command on one screen: at most 24 lines of 80 columns. It is "" if there is none.
func Short(command string) string { return read("short/" + command + ".txt") }

// Topic is the text of one of the Topics, "" of anything else.
func Topic(name string) string {
	return strings.Replace(read("topics/"+name+".txt"), "CODES\n", console.ExitTable+"\n", 1)
}

// Topics are the names of all topics.
func Topics() []string {
	entries, _ := fs.ReadDir(texts, "topics") // it is there: it was embedded
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = strings.TrimSuffix(entry.Name(), ".txt")
	}
	return names
}

func read(path string) string {
	text, err := texts.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}
