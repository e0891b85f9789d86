package main

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"slices"
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

// stale are the entries about the given packages to which no mutant belongs any more.
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

// concerns says whether a key is about one of the packages.
func concerns(targets []*target, key string) bool {
	return slices.ContainsFunc(targets, func(t *target) bool { return strings.HasPrefix(key, path.Dir(t.files[0].path)+" ") })
}
