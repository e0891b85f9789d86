package manifest

import (
	"context"
	"errors"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// The progress map is the file "board" in the directory of the manifest, so that it goes with the
// list: a host that still works on a retracted list finds no other list's map. Each byte is written
// by itself and sent to the server as it is: pages written back from a cache would overwrite the
// bytes of other hosts.

// OpenProgressMap implements source.Chunks.
func (m *Manifest) OpenProgressMap(context.Context) (source.ProgressMap, error) {
	manifest, err := m.files.Find(dirName)
	if err != nil {
		return nil, shareddir.OpError("open the progress map", "", err)
	}
	return &progressMap{dir: manifest}, nil
}

// DropProgressMap implements source.Chunks. A host that has the map open finds the next one.
func (m *Manifest) DropProgressMap(context.Context) error {
	manifest, err := m.files.Find(dirName)
	if err != nil {
		return progressError("open", err)
	}
	defer manifest.Close() //nolint:errcheck // a directory
	return progressError("remove", manifest.Unlink(ProgressFile))
}

type progressMap struct {
	dir vfs.Dir // that of the manifest

	mu     bounded.Turn // held during each call: one that hangs may return after Close
	out    vfs.File     // nil until something is written
	closed bool
}

// Read implements source.ProgressMap. The file is opened anew, which makes an NFS client ask
// whether it has changed.
func (p *progressMap) Read(_ context.Context, size int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil
	}
	data, err := groupfiles.Read(p.dir, ProgressFile, size-1)
	return data[:min(len(data), size)], progressError("read", err)
}

// Write implements source.ProgressMap.
func (p *progressMap) Write(ctx context.Context, at int, value byte) error {
	return p.Confirm(ctx, at, value, func(context.Context) bool { return true })
}

// Confirm implements source.ProgressMap. If the file was removed meanwhile, sure decides again
// whether the byte is written to the next one.
func (p *progressMap) Confirm(ctx context.Context, at int, value byte, sure func(context.Context) bool) error {
	for range shareddir.Rounds() {
		out, err := p.opened()
		if err != nil || out == nil || !sure(ctx) {
			return progressError("write to", err)
		}
		current, err := p.write(out, at, value)
		if err != nil || current {
			return progressError("write to", err)
		}
	}
	return nil // other hosts keep removing it
}

// opened returns the file to write to, nil after Close.
func (p *progressMap) opened() (_ vfs.File, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil && !p.closed {
		p.out, err = p.dir.OpenDurable(ProgressFile, shareddir.AppendMode)
	}
	return p.out, err
}

func (p *progressMap) write(out vfs.File, at int, value byte) (current bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.out != out {
		return p.closed, nil
	}
	_, err = p.out.WriteAt([]byte{value}, int64(at))
	if info, failed := p.out.StatCached(); err == nil && failed == nil && info.Links > 0 {
		return true, nil
	}
	err = errors.Join(groupfiles.IgnoreGone(err), groupfiles.IgnoreGone(p.out.Close()))
	p.out = nil
	return false, err
}

// progressError ignores that there is no map.
func progressError(op string, err error) error {
	if err == nil || vfs.Gone(err) {
		return nil
	}
	return shareddir.OpError(op+" the progress map", "", err)
}

// Close implements source.ProgressMap.
func (p *progressMap) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	if p.out != nil {
		_ = p.out.Close() // each byte is on the server already
		p.out = nil
	}
	return p.dir.Close()
}
