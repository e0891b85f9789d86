package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// target is a package whose code is changed, parsed and with its types.
type target struct {
	path, dir, root string // import path, directory, and that of the module
	tests, testDir  string // import path and directory of the package whose tests are run
	name            string
	fset            *token.FileSet
	files           []*source
	info            *types.Info
	pkg             *types.Package
}

// source is one of its files.
type source struct {
	path    string // from the module's directory
	abs     string
	content []byte
	tree    *ast.File
	imports map[string]string // import path -> its name in this file
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
	ImportMap                     map[string]string
	DepOnly                       bool
	Module                        *struct{ Dir string }
}

// load finds the packages that the patterns name.
func load(patterns []string) ([]*target, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Name,Export,GoFiles,ImportMap,DepOnly,Module"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	var wanted []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly && len(l.GoFiles) > 0 {
			wanted = append(wanted, l)
		}
	}
	var targets []*target
	for _, l := range wanted {
		t, err := parse(l, exports)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

func parse(l listed, exports map[string]string) (*target, error) {
	t := &target{path: l.ImportPath, dir: l.Dir, root: l.Module.Dir, tests: l.ImportPath, testDir: l.Dir, name: l.Name, fset: token.NewFileSet()}
	var trees []*ast.File
	for _, name := range l.GoFiles {
		s, err := t.read(filepath.Join(l.Dir, name))
		if err != nil {
			return nil, err
		}
		t.files, trees = append(t.files, s), append(trees, s.tree)
	}
	t.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{},
	}
	config := types.Config{Importer: importer.ForCompiler(t.fset, "gc", func(path string) (io.ReadCloser, error) {
		if mapped, ok := l.ImportMap[path]; ok {
			path = mapped
		}
		return os.Open(exports[path])
	})}
	var err error
	if t.pkg, err = config.Check(l.ImportPath, t.fset, trees, t.info); err != nil {
		return nil, err
	}
	for _, s := range t.files {
		s.imports = t.importsOf(s.tree)
	}
	return t, nil
}

func (t *target) read(abs string) (*source, error) {
	content, err := os.ReadFile(abs)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Rel(t.root, abs)
	if err != nil {
		return nil, err
	}
	tree, err := parser.ParseFile(t.fset, abs, content, parser.SkipObjectResolution)
	return &source{path: filepath.ToSlash(path), abs: abs, content: content, tree: tree}, err
}

// importsOf says by what names a file knows other packages.
func (t *target) importsOf(tree *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range tree.Imports {
		var object types.Object
		if spec.Name != nil {
			object = t.info.Defs[spec.Name]
		} else {
			object = t.info.Implicits[spec]
		}
		if p, ok := object.(*types.PkgName); ok && p.Name() != "_" {
			names[p.Imported().Path()] = p.Name()
		}
	}
	return names
}

// typeText writes a type down as the file may name it; "" if it cannot.
func (t *target) typeText(s *source, typ types.Type) string {
	known := true
	text := types.TypeString(typ, func(p *types.Package) string {
		if p == t.pkg {
			return ""
		}
		name, ok := s.imports[p.Path()]
		known = known && ok
		return name
	})
	if !known {
		return ""
	}
	return text
}
