package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// equivalents are the changes that change nothing that a test could or should notice,
// each with the reason: a line that begins with # says it for those that follow.
type equivalents struct {
	path    string
	reasons map[string]string // by key
	order   []string
}

func readEquivalents(path string) (*equivalents, error) {
	e := &equivalents{path: path, reasons: map[string]string{}}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var reason string
	inReason := false
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if text, ok := strings.CutPrefix(line, "#"); ok {
			if !inReason {
				reason = ""
			}
			reason, inReason = strings.TrimSpace(reason+" "+strings.TrimSpace(text)), true
			continue
		}
		inReason = false
		switch _, twice := e.reasons[line]; {
		case line == "":
		case reason == "":
			return nil, fmt.Errorf("%s:%d: no reason stands above it", path, n)
		case twice:
			return nil, fmt.Errorf("%s:%d: it is listed twice", path, n)
		default:
			e.reasons[line] = reason
			e.order = append(e.order, line)
		}
	}
	return e, lines.Err()
}

// stale are the entries about the given files to which no mutant belongs any more.
func (e *equivalents) stale(targets []*target, mutants []*mutant) (stale []string) {
	keys := map[string]bool{}
	for _, m := range mutants {
		keys[m.key()] = true
	}
	for _, key := range e.order {
		if !keys[key] && concerns(targets, key) {
			stale = append(stale, key)
		}
	}
	return stale
}

// concerns says whether a key is about one of the packages: about a file in its
// directory, whether or not that is still there.
func concerns(targets []*target, key string) bool {
	for _, t := range targets {
		for _, s := range t.files {
			dir := s.path[:strings.LastIndexByte(s.path, '/')+1]
			if rest, ok := strings.CutPrefix(key, dir); ok && !strings.Contains(strings.SplitN(rest, " ", 2)[0], "/") {
				return true
			}
		}
	}
	return false
}
