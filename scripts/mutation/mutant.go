package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// mutant is one change of the code.
type mutant struct {
	id         int // in its build; 0 is the code as it is
	src        *source
	function   string // it stands in
	line       int
	start, end int    // of what is changed, in the file
	text       string // that is there instead
	nth        int    // among the equal changes of its function, from 1
	// wrap puts the change beside what is there, behind a switch; inner is what is
	// there, with the switches in it.
	wrap func(id int, inner string) string
}

// key names a mutant for as long as its function and its text stay the same,
// wherever in the package they are.
func (m *mutant) key() string {
	key := fmt.Sprintf("%s %s: %s => %s", path.Dir(m.src.path), m.function, oneLine(m.original()), oneLine(m.text))
	if m.nth > 1 {
		key += fmt.Sprintf(" #%d", m.nth)
	}
	return key
}

func (m *mutant) original() string { return string(m.src.content[m.start:m.end]) }

// oneLine is a text without its line breaks, and not all of it if it is long.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "nothing"
	}
	if runes := []rune(text); len(runes) > 140 {
		return string(runes[:100]) + "…" + string(runes[len(runes)-39:])
	}
	return text
}

// diff shows the lines that are changed, before and after.
func (m *mutant) diff() string {
	from := strings.LastIndexByte(string(m.src.content[:m.start]), '\n') + 1
	to := m.end + strings.IndexByte(string(m.src.content[m.end:])+"\n", '\n')
	before := string(m.src.content[from:to])
	after := string(m.src.content[from:m.start]) + m.text + string(m.src.content[m.end:min(to, len(m.src.content))])
	return side("-", before) + side("+", after)
}

// side is one side of a diff, of a few lines at most.
func side(sign, text string) string {
	lines := strings.Split(text, "\n")
	if len(lines) > 5 {
		lines = slices.Concat(lines[:3], []string{"\t\t…"}, lines[len(lines)-1:])
	}
	var b strings.Builder
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			fmt.Fprintf(&b, "    %s %s\n", sign, strings.TrimSpace(line))
		}
	}
	return b.String()
}

// mutants finds all changes of a package. The order is that of the text.
func (t *target) mutants() []*mutant {
	var all []*mutant
	for _, s := range t.files {
		f := &finder{target: t, src: s}
		f.walk(s.tree)
		all = append(all, f.found...)
	}
	seen := map[string]int{}
	for _, m := range all {
		m.nth = 1
		key := m.key()
		seen[key]++
		m.nth = seen[key]
	}
	return all
}

// finder looks for what can be changed in one file.
type finder struct {
	*target
	src   *source
	stack []ast.Node // from the file down to the node
	found []*mutant
}

func (f *finder) walk(tree *ast.File) {
	ast.Inspect(tree, func(n ast.Node) bool {
		if n == nil {
			f.stack = f.stack[:len(f.stack)-1]
			return true
		}
		if f.dangerous(n) {
			return false // ast.Inspect reports no end of what it was kept from
		}
		f.stack = append(f.stack, n)
		f.visit(n)
		return true
	})
}

// dangerous is what no change may touch: a signal that is sent to somebody else, or
// another one than was meant.
func (f *finder) dangerous(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	called, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Kill", "Signal", "PidfdSendSignal", "Tgkill", "Reboot", "Mount", "Unmount"}, called.Sel.Name)
}

// parent is the n-th node above the one that is visited.
func (f *finder) parent(n int) ast.Node {
	if i := len(f.stack) - 1 - n; i >= 0 {
		return f.stack[i]
	}
	return nil
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *finder) text(n ast.Node) string {
	return string(f.src.content[f.offset(n.Pos()):f.offset(n.End())])
}

// add notes a change of what stands from one place to another.
func (f *finder) add(from, to token.Pos, text string, wrap func(id int, inner string) string) {
	f.found = append(f.found, &mutant{
		src: f.src, function: f.functionName(), line: f.fset.Position(from).Line,
		start: f.offset(from), end: f.offset(to), text: text, wrap: wrap,
	})
}

// replace notes a change of an expression.
func (f *finder) replace(e ast.Node, text string, wrap func(id int, inner string) string) {
	f.add(e.Pos(), e.End(), text, wrap)
}

func (f *finder) functionName() string {
	for _, n := range f.stack {
		d, ok := n.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if d.Recv == nil {
			return d.Name.Name
		}
		typ := d.Recv.List[0].Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		if index, ok := typ.(*ast.IndexExpr); ok {
			typ = index.X
		}
		return f.text(typ) + "." + d.Name.Name
	}
	return "-"
}
