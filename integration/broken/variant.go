//go:build linux

package broken

import (
	"fmt"
	"strings"

	"github.com/multilock/go/multilock/vfs"
)

// Variant is a mistake that a lock on NFS can easily make.
type Variant struct {
	Name string // as on a command line
	What string // the mistake, in words
	dir  Dir
}

// The variants' names.
const (
	UnlinkByPath     = "unlink-by-path"
	CachedAttributes = "cached-attributes"
	UnsentHeartbeat  = "unsent-heartbeat"
)

// Variants are all of them.
func Variants() []Variant {
	return []Variant{
		{
			UnlinkByPath, "files are removed by path, so possibly those of another lock than the one that is meant",
			func(d vfs.Dir) vfs.Dir { return byPath{d} },
		},
		{
			CachedAttributes, "the signs of life are looked for in the client's cache",
			func(d vfs.Dir) vfs.Dir { return cached{d} },
		},
		{
			UnsentHeartbeat, "the signs of life do not reach the server",
			func(d vfs.Dir) vfs.Dir { return unsent{d} },
		},
	}
}

// List is the names of all variants, for people.
func List() string {
	var names []string
	for _, v := range Variants() {
		names = append(names, v.Name)
	}
	return strings.Join(names, ", ")
}

// Find returns the variant of that name.
func Find(name string) (Variant, error) {
	for _, v := range Variants() {
		if v.Name == name {
			return v, nil
		}
	}
	return Variant{}, fmt.Errorf("unknown variant %q; there are %s", name, List())
}

// FS is the system's own file system with the mistake in it.
func (v Variant) FS() vfs.FS { return FS{v.dir} }
