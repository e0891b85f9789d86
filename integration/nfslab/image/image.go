//go:build linux

// Package image makes the kernel and the root file system that the lab's machine boots from, out of Debian packages
// that are unpacked, never installed: no daemon starts and nothing of the NFS server is left on the machine that builds.
package image

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// sources is this package's own code: it decides what an image holds, so it is an input of the content hash.
//
//go:embed *.go
var sources embed.FS

// Cache keeps built images in Dir, one directory per content hash, so that a build never changes an image in use.
type Cache struct {
	Dir    string
	Kernel string    // the suite of Debian that it is of; empty: what this machine installs
	Log    io.Writer // progress of a build
}

// Image is a kernel, the same as a program (user-mode Linux), and an uncompressed initramfs for either; all are files
// that never change.
type Image struct {
	Kernel  string
	Program string
	Initrd  string
}

// Current returns the image of this recipe, building it if there is none. It asks no package archive when there is one;
// Build does.
func (c Cache) Current(ctx context.Context) (Image, error) {
	link, err := c.currentLink()
	if err != nil {
		return Image{}, err
	}
	dir, err := filepath.EvalSymlinks(link)
	if errors.Is(err, fs.ErrNotExist) {
		return c.Build(ctx)
	}
	return imageIn(dir), err
}

// Build looks up the package versions of today and makes their image unless the cache has it. Only one build runs at a
// time in a cache; the others wait and find its result.
func (c Cache) Build(ctx context.Context) (Image, error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return Image{}, fmt.Errorf("cache directory: %w", err)
	}
	unlock, err := c.lock()
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	if err := c.ensureHostTools(ctx); err != nil {
		return Image{}, err
	}
	dir, err := c.resolved(ctx)
	if err != nil && ctx.Err() == nil { // the archive no longer has a version that old lists name; the lists are new now
		fmt.Fprintf(c.Log, "once more: %v\n", err)
		dir, err = c.resolved(ctx)
	}
	if err != nil {
		return Image{}, err
	}
	return imageIn(dir), c.point(dir)
}

// resolved makes the image of the versions that apt names, unless the cache has it.
func (c Cache) resolved(ctx context.Context) (dir string, err error) {
	packages, err := c.resolve(ctx)
	if err != nil {
		return "", err
	}
	return c.ensure(ctx, packages)
}

// Lock keeps builds out until the returned function is called. It waits for one that runs.
func (c Cache) lock() (func(), error) {
	f, err := os.OpenFile(filepath.Join(c.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cache lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("cache lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

func (c Cache) ensure(ctx context.Context, packages packageSet) (string, error) {
	key, err := contentKey(packages)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(c.Dir, "image-"+key)
	if _, err := os.Stat(dir); err == nil {
		fmt.Fprintf(c.Log, "image %s is up to date\n", key)
		return dir, nil
	}
	work, err := os.MkdirTemp(c.Dir, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	fmt.Fprintf(c.Log, "building image %s from %d packages\n", key, len(packages.root)+len(packages.kernel)+1)
	finished, err := c.assemble(ctx, packages, work)
	if err != nil {
		return "", fmt.Errorf("build image: %w", err)
	}
	return dir, os.Rename(finished, dir)
}

// Point makes dir the image that Current finds. Renaming a link over the old one leaves no moment without either.
func (c Cache) point(dir string) error {
	link, err := c.currentLink()
	if err != nil {
		return err
	}
	next := link + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(filepath.Base(dir), next); err != nil {
		return err
	}
	return os.Rename(next, link)
}

// CurrentLink is named after the recipe alone, which is known without asking the package archive for versions.
func (c Cache) currentLink() (string, error) {
	key, err := contentKey(packageSet{suite: c.Kernel})
	return filepath.Join(c.Dir, "current-"+key), err
}

func imageIn(dir string) Image {
	return Image{
		Kernel: filepath.Join(dir, "vmlinuz"), Program: filepath.Join(dir, "linux.uml"), Initrd: filepath.Join(dir, "root.cpio"),
	}
}

func contentKey(packages packageSet) (string, error) {
	hash := sha256.New()
	entries, err := sources.ReadDir(".")
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		content, err := sources.ReadFile(entry.Name())
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", entry.Name(), len(content), content)
	}
	fmt.Fprintf(hash, "%s\n%s\n%s\n%s\n", packages.suite, strings.Join(packages.kernel, "\n"), packages.program, strings.Join(packages.root, "\n"))
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
