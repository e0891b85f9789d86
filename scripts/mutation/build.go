package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// support is what the switches call. The changed code of all processes of a run is
// the same; which change is in force says the environment. What was reached is noted
// in memory that all of them share, so that it also comes from those that are killed.
const support = `package %s

import (
	"os"
	"strconv"
	"syscall"
)

var active__, reached__ = setUp__()

func setUp__() (int, []byte) {
	id, _ := strconv.Atoi(os.Getenv("MUTANT"))
	f, err := os.OpenFile(os.Getenv("MUTANTS_REACHED"), os.O_RDWR, 0)
	if err != nil {
		return id, nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return id, nil
	}
	reached, _ := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	return id, reached
}

func mutated__(id int) bool {
	if reached__ != nil {
		reached__[id] = 1
	}
	return id == active__
}

func dropped__(id int, err error) error {
	if mutated__(id) {
		return nil
	}
	return err
}
`

// binary is a package's tests, built with some of its mutants.
type binary struct {
	*target
	path    string
	mutants []*mutant // by their numbers, from 1
	spare   time.Duration
}

// build builds the tests with all mutants. Those that the compiler refuses are left out,
// and returned.
func (t *target) build(work string, all []*mutant) (b *binary, refused []*mutant, err error) {
	for {
		b = &binary{target: t, path: filepath.Join(work, "switched.test")}
		files := map[string]string{filepath.Join(t.dir, "mutants__.go"): fmt.Sprintf(support, t.name)}
		for _, s := range t.files {
			for _, m := range all {
				if m.src == s {
					b.mutants = append(b.mutants, m)
					m.id = len(b.mutants)
				}
			}
			files[s.abs] = t.switched(s, b.mutants)
		}
		out, err := t.compile(work, b.path, files)
		if err == nil {
			return b, refused, nil
		}
		bad := complainedAbout(string(out), b.mutants)
		if len(bad) == 0 {
			return nil, nil, fmt.Errorf("build %s: %w\n%s", t.path, err, out)
		}
		refused = append(refused, bad...)
		all = slices.DeleteFunc(slices.Clone(all), func(m *mutant) bool { return slices.Contains(bad, m) })
	}
}

// compile builds the package's tests with other files in the place of some of its own.
func (t *target) compile(work, output string, files map[string]string) ([]byte, error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for real, content := range files {
		instead := filepath.Join(work, fmt.Sprintf("%d-%s", len(overlay.Replace), filepath.Base(real)))
		if err := os.WriteFile(instead, []byte(content), 0o666); err != nil {
			return nil, err
		}
		overlay.Replace[real] = instead
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		return nil, err
	}
	list := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(list, data, 0o666); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "test", "-c", "-overlay", list, "-gcflags=-e", "-o", output, t.tests)
	cmd.Dir = t.root
	return cmd.CombinedOutput()
}

// complainedAbout finds the mutants on the lines of the compiler's errors: no switch
// adds or removes a line.
func complainedAbout(output string, all []*mutant) (bad []*mutant) {
	for _, found := range regexp.MustCompile(`(?m)([^/\s:]+\.go):(\d+):`).FindAllStringSubmatch(output, -1) {
		line, _ := strconv.Atoi(found[2])
		for _, m := range all {
			there := strings.HasSuffix(found[1], filepath.Base(m.src.path)) && m.line <= line && line <= m.line+strings.Count(m.original(), "\n")
			if there && !slices.Contains(bad, m) {
				bad = append(bad, m)
			}
		}
	}
	return bad
}

// switched is the text of a file with all its mutants behind switches.
func (t *target) switched(s *source, all []*mutant) string {
	f := &file{source: s}
	for _, m := range all {
		if m.src == s {
			f.mutants = append(f.mutants, m)
		}
	}
	// The outer ones first, and of those on the same text the earlier found.
	slices.SortStableFunc(f.mutants, func(a, b *mutant) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	f.ends = t.functionEnds(s)
	var b strings.Builder
	f.write(&b, 0, len(s.content))
	return b.String()
}

// functionEnds are where functions end that have results: with its statements behind
// switches, the compiler does not see that the end is never reached.
func (t *target) functionEnds(s *source) (ends []int) {
	add := func(typ *ast.FuncType, body *ast.BlockStmt) {
		if body != nil && typ.Results != nil && len(typ.Results.List) > 0 {
			ends = append(ends, t.fset.Position(body.Rbrace).Offset)
		}
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Type, n.Body)
		case *ast.FuncLit:
			add(n.Type, n.Body)
		}
		return true
	})
	slices.Sort(ends)
	return ends
}

// file is one that is being written with its switches.
type file struct {
	*source
	mutants []*mutant // that are not written yet, in the order of the text
	ends    []int
}

// write writes the text from one place to another.
func (f *file) write(b *strings.Builder, from, to int) {
	for from < to {
		next := to
		if len(f.mutants) > 0 && f.mutants[0].start < next {
			next = f.mutants[0].start
		}
		if len(f.ends) > 0 && f.ends[0] < next {
			next = f.ends[0]
			f.ends = f.ends[1:]
			b.Write(f.content[from:next])
			b.WriteString("; panic(`a mutant: the function goes on beyond its end`)")
			from = next
			// The brace itself is written now, for no two ends are at one place.
			b.WriteByte(f.content[from])
			from++
			continue
		}
		b.Write(f.content[from:next])
		from = next
		if next < to {
			from = f.writeMutants(b)
		}
	}
}

// writeMutants writes what the next mutants change, and says where it ends.
func (f *file) writeMutants(b *strings.Builder) int {
	first := f.mutants[0]
	var same []*mutant
	for len(f.mutants) > 0 && f.mutants[0].start == first.start && f.mutants[0].end == first.end {
		same, f.mutants = append(same, f.mutants[0]), f.mutants[1:]
	}
	var inner strings.Builder
	f.write(&inner, first.start, first.end)
	text := inner.String()
	for _, m := range same {
		text = m.wrap(m.id, text)
	}
	b.WriteString(text)
	return first.end
}
