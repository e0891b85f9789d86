package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// nameList is a flag's value: names with commas between them. A name with a comma
// in it can come from a file only.
type nameList []string

func (l *nameList) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		if name != "" {
			*l = append(*l, name)
		}
	}
	return nil
}

func (l *nameList) String() string { return "" }

// readMembers gathers the names of jobs from options and from a file.
func readMembers(e *env, named []string, path string) ([]string, error) {
	names := named
	if path != "" {
		listed, err := readMembersFile(e, path)
		if err != nil {
			return nil, err
		}
		names = append(names, listed...)
	}
	return names, nil
}

func readMembersFile(e *env, path string) ([]string, error) {
	if path == "-" {
		return parseMembers(e.Stdin, "the standard input")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the names of the jobs: %w", err)
	}
	defer f.Close()
	return parseMembers(f, path)
}

// maxLine bounds a line of a file, whose commands may be long.
const maxLine = 4 << 20

// parseMembers takes the names from lines: all of a line, or what stands before
// the first tab. Empty lines and comments are skipped.
func parseMembers(r io.Reader, from string) ([]string, error) {
	var names []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		name, _, _ := strings.Cut(strings.TrimSuffix(lines.Text(), "\r"), "\t")
		if strings.TrimSpace(name) == "" || strings.HasPrefix(name, "#") {
			continue
		}
		names = append(names, name)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the names of the jobs from %s: %w", from, err)
	}
	return names, nil
}
