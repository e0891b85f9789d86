// Command explore has the schedules of multilock/fslock's explorer tried on mutants of the
// protocol, and prints what catches each: the table of docs/proof.md.
//
//	go run ./scripts/explore [NAME...]
package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed mutants.txt
var mutants string

// mutant is a change of the code. One that nothing catches has the reason: it changes nothing
// that is promised, or what it takes is not played yet.
type mutant struct {
	name, uncaught string
	edits          []edit
}

type edit struct{ file, old, changed string }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "explore:", err)
		os.Exit(1)
	}
}

func run(names []string) error {
	all, err := read(mutants)
	if err != nil {
		return err
	}
	fmt.Println("| mutant | every order | an order and a fault | at random | one stays | what breaks |\n|---|---|---|---|---|---|")
	var survive []string
	for _, m := range all {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		caught, err := try(m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if !caught && m.uncaught == "" {
			survive = append(survive, m.name)
		}
	}
	if len(survive) > 0 {
		return fmt.Errorf("these survive: %s", strings.Join(survive, "; "))
	}
	return nil
}

// read takes the list apart: a line "== NAME", "= why nothing catches it", the path of a file, and
// the lines of it, with "-" and "+" before what changes.
func read(text string) (all []mutant, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		last := len(all) - 1
		name, begins := strings.CutPrefix(line, "== ")
		switch {
		case begins:
			all = append(all, mutant{name: name})
		case line == "" || strings.HasPrefix(line, "#"):
		case last < 0:
			return nil, fmt.Errorf("%q is before all mutants", line)
		case strings.HasPrefix(line, "= "):
			all[last].uncaught = line[2:]
		case line[0] == '-' || line[0] == '+':
			edits := all[last].edits
			if len(edits) == 0 {
				return nil, fmt.Errorf("%s: which file?", all[last].name)
			}
			e := &edits[len(edits)-1]
			if line[0] == '-' {
				e.old += line[1:] + "\n"
			} else {
				e.changed += line[1:] + "\n"
			}
		default:
			all[last].edits = append(all[last].edits, edit{file: line})
		}
	}
	return all, nil
}

// try runs the tests with the mutant in the place of the code, and prints its row.
func try(m mutant) (caught bool, err error) {
	dir, err := os.MkdirTemp("", "explore-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // scratch
	overlay, err := overlayOf(m, dir)
	if err != nil {
		return false, err
	}
	cmd := exec.CommandContext(context.Background(), "go", "test", "-count", "1", "-overlay", overlay, "-timeout", "10m", "-v", "-run", "^TestExplore", "./multilock/fslock") //nolint:gosec // a path of ours
	out, err := cmd.CombinedOutput()
	if errors.As(err, new(*exec.ExitError)) {
		err = nil
	}
	cells, why := []string{}, ""
	for _, test := range []string{"TestExploreEveryOrder", "TestExploreAFault", "TestExploreAtRandom", "TestExploreStays"} {
		cell, found := result(string(out), test)
		cells = append(cells, cell)
		why = cmp.Or(why, found)
	}
	if why == "" && m.uncaught == "" && strings.Contains(string(out), "[build failed]") {
		return false, fmt.Errorf("it does not build: %s", out)
	}
	fmt.Printf("| %s | %s | %s |\n", m.name, strings.Join(cells, " | "), cmp.Or(why, m.uncaught, "**survives**"))
	return why != "", err
}

func overlayOf(m mutant, dir string) (string, error) {
	replace := map[string]string{}
	for i, e := range m.edits {
		path, err := filepath.Abs(e.file)
		if err != nil {
			return "", err
		}
		text, err := os.ReadFile(cmp.Or(replace[path], path))
		if err != nil {
			return "", err
		}
		if strings.Count(string(text), e.old) != 1 {
			return "", fmt.Errorf("%s has this %d times, and not once:\n%s", e.file, strings.Count(string(text), e.old), e.old)
		}
		replace[path] = filepath.Join(dir, fmt.Sprint(i)+".go")
		if err := os.WriteFile(replace[path], []byte(strings.Replace(string(text), e.old, e.changed, 1)), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

var (
	schedules = regexp.MustCompile(`(\d+) schedules`)
	violation = regexp.MustCompile(`Error:\s+(I\d|stuck)`)
)

// result is what became of a test: after how many schedules it failed, and of what.
func result(out, test string) (cell, why string) {
	_, part, ran := strings.Cut(out, "=== RUN   "+test+"\n")
	part, _, _ = strings.Cut(part, "=== RUN")
	if !ran {
		return "-", ""
	}
	count := schedules.FindStringSubmatch(part)
	switch found := violation.FindStringSubmatch(part); {
	case found != nil && count != nil:
		return count[1], found[1]
	case strings.Contains(part, "panic:"):
		return "panic", "panic"
	}
	return "", ""
}
