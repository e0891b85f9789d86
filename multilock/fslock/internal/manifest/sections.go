package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// Sections continue a manifest: directories more-1, more-2, ... in the directory of the manifest, each
// with a file "list". They are placed as the manifest is, and removed with it.

const morePrefix = "more-"

// MaxSections is the largest number of sections. So many are read, and removed together.
const MaxSections = 200

func sectionDir(n int) string { return morePrefix + strconv.Itoa(n) }

// IsSection reports whether a name is that of a section's directory.
func IsSection(name string) bool {
	number, ok := strings.CutPrefix(name, morePrefix)
	n, err := strconv.Atoi(number)
	return ok && err == nil && n > 0 && name == sectionDir(n)
}

// Sections implements source.ManifestGrower.
func (m *Manifest) Sections(_ context.Context, most int) (sections [][]byte, err error) {
	dir, err := m.openManifestDir()
	if err == nil {
		defer dir.Close() //nolint:errcheck // a directory
		sections, err = m.sections(dir, most)
	}
	return sections, sectionError(err)
}

// sectionError keeps fs.ErrNotExist, which means that there is no manifest.
func sectionError(err error) error {
	if err == nil {
		return nil
	}
	return shareddir.OpError("read the manifest", "", err)
}

// openManifestDir opens the directory of the manifest, past an NFS client's cache of names.
func (m *Manifest) openManifestDir() (vfs.Dir, error) {
	private, err := m.files.Find()
	if err != nil {
		return nil, err
	}
	defer private.Close() //nolint:errcheck // a directory
	if err := m.files.Refresh(private); err != nil {
		return nil, err
	}
	return private.OpenDir(dirName)
}

// openSection opens section n; 0 is the first list. Behind the last one vfs.Gone(err) is true.
func (m *Manifest) openSection(dir vfs.Dir, n int) (vfs.File, error) {
	switch {
	case n == 0:
		return dir.Open(File)
	case n > MaxSections:
		return nil, syscall.ENOENT
	}
	return m.openList(dir, sectionDir(n))
}

// lastWhole returns the last section that replaces those before it; 0 is the first list.
func (m *Manifest) lastWhole(dir vfs.Dir) (last int, err error) {
	for n := 1; ; n++ {
		f, err := m.openSection(dir, n)
		if vfs.Gone(err) {
			return last, nil
		}
		if err != nil {
			return 0, err
		}
		head := make([]byte, len(source.Whole))
		if k, _ := f.ReadAt(head, 0); string(head[:k]) == source.Whole {
			last = n
		}
		_ = f.Close()
	}
}

// replacement returns the beginning of the section that replaces the manifest, nil if none does.
func (m *Manifest) replacement(private vfs.Dir) ([]byte, error) {
	dir, err := private.OpenDir(dirName)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	last, err := m.lastWhole(dir)
	if err != nil || last == 0 {
		return nil, err
	}
	f, err := m.openSection(dir, last)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	return io.ReadAll(io.LimitReader(f, manifestMore))
}

// Grown implements source.ManifestGrower.
func (m *Manifest) Grown(_ context.Context, known int) (bool, error) {
	dir, err := m.openManifestDir()
	if err != nil {
		return false, sectionError(groupfiles.IgnoreGone(err))
	}
	defer dir.Close() //nolint:errcheck // a directory
	f, err := m.openSection(dir, known)
	if err != nil {
		return false, sectionError(groupfiles.IgnoreGone(err))
	}
	return true, f.Close()
}

// OnlyOurs implements source.ManifestGrower.
func (m *Manifest) OnlyOurs() bool { return m.files.Base.OnlyOurs() }

// sections reads a manifest with its sections, up to a number of bytes in all.
func (m *Manifest) sections(dir vfs.Dir, most int) (sections [][]byte, err error) {
	for {
		f, err := m.openSection(dir, len(sections))
		if vfs.Gone(err) && len(sections) > 0 {
			return sections, nil
		}
		if err != nil {
			return nil, err
		}
		section, err := io.ReadAll(io.LimitReader(f, int64(most)))
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		most -= len(section)
		sections = append(sections, section)
	}
}

// Continue implements source.ManifestGrower. It uses one descriptor of the manifest's directory, and
// finally checks that this is still the group's.
func (m *Manifest) Continue(ctx context.Context, known [][]byte, more []byte) (done bool, err error) {
	if len(known) > MaxSections {
		return false, &source.InvalidError{What: "list of jobs", Got: m.files.Group, Why: fmt.Sprintf("it was continued %d times; choose another group for what is to follow", MaxSections)}
	}
	err = groupfiles.InRounds("continue the manifest", "", func() error {
		done, err = m.continueManifest(ctx, known, more)
		return err
	})
	return done, err
}

func (m *Manifest) continueManifest(ctx context.Context, known [][]byte, more []byte) (bool, error) {
	wanted, most := append(slices.Clip(known), more), manifestMore
	for _, section := range wanted {
		most += len(section)
	}
	dir, err := m.openManifestDir()
	if err != nil {
		return false, sectionError(groupfiles.IgnoreGone(err))
	}
	defer dir.Close() //nolint:errcheck // a directory
	there, err := m.sections(dir, most)
	switch {
	case err != nil:
		return false, sectionError(groupfiles.IgnoreGone(err))
	case begins(there, wanted): // an earlier round's, or another host's
		return true, nil
	case len(there) != len(known) || !begins(there, known):
		return false, nil
	}
	_, err = m.placeList(dir, sectionDir(len(known)), more)
	if err != nil && m.isRetracted(dir) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	there, err = m.Sections(ctx, most)
	return begins(there, wanted), groupfiles.IgnoreGone(err)
}

// isRetracted reports whether a manifest was retracted: its list is removed first.
func (m *Manifest) isRetracted(dir vfs.Dir) bool {
	_ = m.files.Refresh(dir)
	f, err := dir.Open(File)
	if err == nil {
		_ = f.Close()
	}
	return vfs.Gone(err)
}

// begins reports whether a manifest begins with these sections.
func begins(manifest, with [][]byte) bool {
	return len(manifest) >= len(with) && slices.EqualFunc(manifest[:len(with)], with, bytes.Equal)
}

// OpenManifest implements source.ManifestStore.
func (m *Manifest) OpenManifest(context.Context) (io.ReadCloser, error) {
	dir, err := m.openManifestDir()
	if err != nil {
		return nil, sectionError(err)
	}
	r := &manifestReader{manifest: m, dir: dir}
	if r.n, err = m.lastWhole(dir); err == nil {
		r.f, err = m.openSection(dir, r.n)
	}
	if err != nil {
		_ = dir.Close()
		return nil, sectionError(err)
	}
	return r, nil
}

// manifestReader reads a manifest and its sections.
type manifestReader struct {
	manifest *Manifest
	dir      vfs.Dir
	f        vfs.File // of section n; nil at the end
	n        int
}

// Read implements io.Reader.
func (r *manifestReader) Read(p []byte) (int, error) {
	for r.f != nil {
		n, err := r.f.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		_ = r.f.Close()
		r.n++
		if r.f, err = r.manifest.openSection(r.dir, r.n); err != nil {
			r.f = nil
			if !vfs.Gone(err) {
				return 0, sectionError(err)
			}
		}
	}
	return 0, io.EOF
}

// Close implements io.Closer.
func (r *manifestReader) Close() error {
	if r.f != nil {
		_ = r.f.Close()
		r.f = nil
	}
	return r.dir.Close()
}
