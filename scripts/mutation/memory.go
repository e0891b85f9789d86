package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// memory is what earlier runs found: one result a line, the last of a mutant counts.
//
// That a mutant was killed stays true for as long as the function is the same. That it
// survived is tried again when anything in the package's directory has changed.
type memory struct {
	mu    sync.Mutex
	file  *os.File
	known map[string]result
}

func openMemory(path string) (*memory, error) {
	m := &memory{known: map[string]result{}}
	old, err := os.Open(path)
	switch {
	case err == nil:
		defer old.Close()
		lines := bufio.NewScanner(old)
		for lines.Scan() {
			var r result
			if json.Unmarshal(lines.Bytes(), &r) == nil { // the last line may be torn
				m.known[r.Key] = r
			}
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if m.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666); err != nil {
		return nil, err
	}
	_, err = m.file.WriteString("\n") // ends a line that was torn
	return m, err
}

func (m *memory) recall(key, function, pkg string) (result, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.known[key]
	return r, ok && r.Function == function && (r.Verdict == killed || r.Package == pkg)
}

func (m *memory) keep(r result) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[r.Key] = r
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = m.file.Write(append(data, '\n'))
	return err
}

// digests are those of the functions' texts by name, and of all that lies in the
// package's directory. What stands outside of functions has the package's.
func (t *target) digests() (functions map[string]string, pkg string, err error) {
	all := sha256.New()
	names, err := filepath.Glob(filepath.Join(t.dir, "*.go"))
	if err != nil {
		return nil, "", err
	}
	tests, err := filepath.Glob(filepath.Join(t.testDir, "*.go"))
	if err != nil {
		return nil, "", err
	}
	for _, name := range append(names, tests...) {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, "", err
		}
		_, _ = fmt.Fprintf(all, "%s %d\n%s", filepath.Base(name), len(content), content)
	}
	pkg = fmt.Sprintf("%x", all.Sum(nil)[:8])
	functions = map[string]string{}
	for _, s := range t.files {
		f := &finder{target: t, src: s}
		for _, d := range s.tree.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				f.stack = []ast.Node{d}
				functions[s.path+" "+f.functionName()] = fmt.Sprintf("%x", sha256.Sum256([]byte(f.text(d))))[:16]
			}
		}
	}
	return functions, pkg, nil
}
