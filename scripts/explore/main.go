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
// that is guaranteed, or what it takes is not played yet.
type mutant struct {
	name, uncaught string
	tests          string // the one that is to catch it, or all
	where          string // the package that they are in
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
	fmt.Println("| mutant | caught by | choices | schedules | time | what breaks |\n|---|---|---|---|---|---|")
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

// read takes the list apart: a line "== NAME", "= why nothing catches it" or "@ the test that does",
// with its package before it if that is not scenes, the path of a file, and the lines of it, with
// "-" and "+" before what changes.
func read(text string) (all []mutant, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		last := len(all) - 1
		name, begins := strings.CutPrefix(line, "== ")
		switch {
		case begins:
			all = append(all, mutant{name: name, tests: "TestExplore", where: "internal/explore/scenes"})
		case line == "" || strings.HasPrefix(line, "#"):
		case last < 0:
			return nil, fmt.Errorf("%q is before all mutants", line)
		case strings.HasPrefix(line, "= "):
			all[last].uncaught = line[2:]
		case strings.HasPrefix(line, "@ "):
			where, tests, apart := strings.Cut(line[2:], " ")
			if !apart {
				where, tests = all[last].where, where
			}
			all[last].where, all[last].tests = where, "("+tests+")$"
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
	cmd := exec.CommandContext(context.Background(), "go", "test", "-count", "1", "-vet", "off", "-ldflags", "-s -w", "-overlay", overlay, "-timeout", "10m", "-failfast", "-parallel", "1", "-v", "-run", "^"+m.tests) //nolint:gosec // a path of ours
	cmd.Dir = m.where                                                                                                                                                                                                   // it may be of another module
	out, err := cmd.CombinedOutput()
	if errors.As(err, new(*exec.ExitError)) {
		err = nil
	}
	if strings.Contains(string(out), "[build failed]") {
		return false, fmt.Errorf("it does not build: %s", out)
	}
	row := result(string(out))
	if row == "" {
		row = "| | | | " + cmp.Or(m.uncaught, "**survives**")
	}
	fmt.Printf("| %s %s |\n", m.name, row)
	return !strings.HasPrefix(row, "| | | |"), err
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
	failed    = regexp.MustCompile(`--- FAIL: TestExplore(\w+) \(([0-9.]+s)\)`)
	schedules = regexp.MustCompile(`(\d+) schedules`)
	choices   = regexp.MustCompile(`explore\.Choices\{(.*)\}`)
	violation = regexp.MustCompile(`Error:\s+(I\d|stuck|fence|barrier|job|prepare)`)
)

// result is what became of the tests: which failed, told by how many choices that are not the
// usual ones, after how many schedules, in what time, and of what. It is empty if none did.
func result(out string) (row string) {
	test, found := failed.FindStringSubmatch(out), violation.FindStringSubmatch(out)
	switch {
	case test != nil && found != nil:
	case strings.Contains(out, "panic:"):
		return "| | | | | panic"
	default:
		return ""
	}
	told, count, counts := 0, "", schedules.FindAllStringSubmatch(out, -1)
	if c := choices.FindStringSubmatch(out); c != nil {
		told = strings.Count(c[1], ":")
	}
	if len(counts) > 0 {
		count = counts[len(counts)-1][1]
	}
	return fmt.Sprintf("| %s | %d | %s | %s | %s", test[1], told, count, test[2], found[1])
}
