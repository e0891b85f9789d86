// Package help has the texts of the program's help: an overview on one screen, and the topics of "multilock
// help". They are files, so that they can be edited in the form in which they are shown. The help of a
// command is next to its code, and in the table of options.
package help

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

//go:embed *.txt topics/*.txt
var texts embed.FS

// Program returns the program's help for -h, which fits on a screen of 24 lines of 80 columns.
func Program() string { return read("program.txt") }

// First returns the text for a call without arguments.
func First() string { return read("first.txt") }

// Topic returns the text of a topic, "" if it is unknown.
func Topic(name string) string {
	return strings.Replace(read("topics/"+name+".txt"), "CODES\n", console.ExitTable+"\n", 1)
}

// about lists the topics for each command in addition to the topic of the same name, and for the program
// under "".
var about = map[string]string{
	"":        "locks sources environment exit-codes troubleshooting",
	"run":     "schedule waiting output hooks environment exit-codes",
	"batch":   "environment exit-codes waiting",
	"wait":    "waiting exit-codes",
	"acquire": "waiting exit-codes",
	"status":  "locks waiting",
	"break":   "locks exit-codes",
	"overdue": "schedule",
	"logs":    "output",
	"doctor":  "filesystems sources",
	"config":  "environment",
}

// About returns the topics about a command or, for "", the program.
func About(command string) (topics []string) {
	if command != "" && Topic(command) != "" {
		topics = append(topics, command)
	}
	return append(topics, strings.Fields(about[command])...)
}

// Topics returns the names of all topics.
func Topics() []string {
	entries, _ := fs.ReadDir(texts, "topics") // embedded, so it cannot fail
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
