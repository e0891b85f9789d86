package fslock

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

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// A manifest is continued by sections: directories more-1, more-2, ... in its own, each with a
// file "list", which come there as the manifest itself has come to its place. They go with it.

// maxSections bounds them: so many are looked for, and taken away together.
const maxSections = 200

func sectionDir(n int) string { return morePrefix + strconv.Itoa(n) }

func isSection(name string) bool {
	number, ok := strings.CutPrefix(name, morePrefix)
	n, err := strconv.Atoi(number)
	return ok && err == nil && n > 0 && name == sectionDir(n)
}

var (
	_ source.ManifestStore  = (*Source)(nil)
	_ source.ManifestGrower = (*Source)(nil)
)

// Sections implements source.ManifestGrower.
func (s *Source) Sections(_ context.Context, most int) (sections [][]byte, err error) {
	dir, err := s.openManifestDir()
	if err == nil {
		defer dir.Close() //nolint:errcheck // a directory
		sections, err = s.sections(dir, most)
	}
	return sections, sectionError(err)
}

// sectionError lets fs.ErrNotExist say that there is no manifest.
func sectionError(err error) error {
	if err == nil {
		return nil
	}
	return opError("read the manifest", "", err)
}

// openManifestDir opens the directory of the manifest, past what an NFS client remembers of
// the names in the group's.
func (s *Source) openManifestDir() (vfs.Dir, error) {
	private, err := s.find(vfs.Dir.OpenDir, groupsDir, s.group)
	if err != nil {
		return nil, err
	}
	defer private.Close() //nolint:errcheck // a directory
	if err := s.refresh(private); err != nil {
		return nil, err
	}
	return private.OpenDir(manifestDir)
}

// openSection opens the list of a manifest, as number 0, or one that continues it. The one
// behind the last is gone(err).
func (s *Source) openSection(dir vfs.Dir, n int) (vfs.File, error) {
	switch {
	case n == 0:
		return dir.Open(manifestFile)
	case n > maxSections:
		return nil, syscall.ENOENT
	}
	return s.openList(dir, sectionDir(n))
}

// sections reads a manifest with all that continues it, up to a number of bytes in all.
func (s *Source) sections(dir vfs.Dir, most int) (sections [][]byte, err error) {
	for {
		f, err := s.openSection(dir, len(sections))
		if gone(err) && len(sections) > 0 {
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

// Continue implements source.ManifestGrower. All goes through one descriptor of the
// manifest's directory; and in the end that has to be the group's still.
func (s *Source) Continue(ctx context.Context, known [][]byte, more []byte) (done bool, err error) {
	if len(known) > maxSections {
		return false, &source.InvalidError{What: "list of jobs", Got: s.group, Why: fmt.Sprintf("it was continued %d times; choose another group for what is to follow", maxSections)}
	}
	err = inRounds("continue the manifest", "", func() error {
		done, err = s.continueManifest(ctx, known, more)
		return err
	})
	return done, err
}

func (s *Source) continueManifest(ctx context.Context, known [][]byte, more []byte) (bool, error) {
	wanted, most := append(slices.Clip(known), more), manifestMore
	for _, section := range wanted {
		most += len(section)
	}
	dir, err := s.openManifestDir()
	if err != nil {
		return false, sectionError(ignoreGone(err))
	}
	defer dir.Close() //nolint:errcheck // a directory
	there, err := s.sections(dir, most)
	switch {
	case err != nil:
		return false, sectionError(ignoreGone(err))
	case begins(there, wanted): // an earlier round's, or another host's
		return true, nil
	case len(there) != len(known) || !begins(there, known):
		return false, nil
	}
	_, err = s.placeList(dir, sectionDir(len(known)), more)
	if err != nil && s.fallsToPieces(dir) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	there, err = s.Sections(ctx, most)
	return begins(there, wanted), ignoreGone(err)
}

// fallsToPieces says of the directory of a manifest that it was retracted: its list goes first.
func (s *Source) fallsToPieces(dir vfs.Dir) bool {
	_ = s.refresh(dir)
	f, err := dir.Open(manifestFile)
	if err == nil {
		_ = f.Close()
	}
	return gone(err)
}

// begins says whether a manifest begins with these sections.
func begins(manifest, with [][]byte) bool {
	return len(manifest) >= len(with) && slices.EqualFunc(manifest[:len(with)], with, bytes.Equal)
}

// OpenManifest implements source.ManifestStore.
func (s *Source) OpenManifest(context.Context) (io.ReadCloser, error) {
	dir, err := s.openManifestDir()
	if err != nil {
		return nil, sectionError(err)
	}
	r := &manifestReader{src: s, dir: dir}
	if r.f, err = s.openSection(dir, 0); err != nil {
		_ = dir.Close()
		return nil, sectionError(err)
	}
	return r, nil
}

// manifestReader reads a manifest, and then what continues it.
type manifestReader struct {
	src *Source
	dir vfs.Dir
	f   vfs.File // of section n; nil at the end
	n   int
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
		if r.f, err = r.src.openSection(r.dir, r.n); err != nil {
			r.f = nil
			if !gone(err) {
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
