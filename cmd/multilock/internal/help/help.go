// Package help has texts that are shown on request: the program on one screen, and the topics of
// "multilock help". They are files, so that they can be read and changed as they will be seen. What
// a command says is with the command, and with the table of options.
package help

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

//go:embed *.txt topics/*.txt
var texts embed.FS

// Program is what -h says of the program as a whole, on a screen of 24 lines of 80 columns.
func Program() string { return read("program.txt") }

// First is shown if nothing but the program's name was typed.
func First() string { return read("first.txt") }

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
