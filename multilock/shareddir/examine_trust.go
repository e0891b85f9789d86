package shareddir

import (
	"fmt"
	"path"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

const (
	// refusedShown is how many refused entries are listed.
	refusedShown = 20
	// trustDepth is how deep they are looked for: base, .multilock, groups, a group, its
	// directories, their files.
	trustDepth = 5
	// trustEntries is how many entries are looked at: each is a request.
	trustEntries = 10_000
)

// trustWalk looks for what this process does not believe.
type trustWalk struct {
	circle  *circle
	entries int // that may still be looked at
	refused []source.Finding
}

// examineTrust says whom this process believes here, and lists what it does not: in the
// base directory's entries of these names, and all that is below them.
func (b *Base) examineTrust(names []string) []source.Finding {
	w := trustWalk{circle: b.circle, entries: trustEntries}
	w.look(b.Dir, "", names, trustDepth)
	text := "trusts files of " + b.circle.whom()
	if w.entries <= 0 {
		text += fmt.Sprintf("; only the first %d entries were checked", trustEntries)
	}
	found := []source.Finding{source.Fine("trust", text)}
	if more := len(w.refused) - refusedShown; more > 0 {
		w.refused = append(w.refused[:refusedShown], source.Warning("trust", fmt.Sprintf("%d more files or directories are not trusted", more), ""))
	}
	return append(found, w.refused...)
}

// look notes what is not admitted, by name. What cannot be looked at is nothing to refuse.
func (w *trustWalk) look(dir vfs.Dir, at string, names []string, depth int) {
	for _, name := range names {
		if w.entries--; w.entries < 0 {
			return
		}
		info, err := dir.StatName(name)
		if err != nil {
			continue
		}
		if err := w.circle.admit(info, false); err != nil {
			w.refused = append(w.refused, source.Warning("trust", path.Join(at, name)+" is not trusted: "+err.Error(), adviceOn(err)))
		} else if info.Mode.IsDir() && depth > 0 {
			w.below(dir, at, name, depth-1)
		}
	}
}

func (w *trustWalk) below(dir vfs.Dir, at, name string, depth int) {
	below, err := dir.OpenDir(name)
	if err != nil {
		return
	}
	defer below.Close() //nolint:errcheck // a directory
	_ = below.List(func(entry string) bool {
		w.look(below, path.Join(at, name), []string{entry}, depth)
		return w.entries > 0
	})
}
