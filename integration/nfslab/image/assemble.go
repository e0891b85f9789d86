//go:build linux

package image

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/multilock/go/integration/nfslab/cpio"
)

// assemble makes an image in a directory below work and returns it.
func (c Cache) assemble(ctx context.Context, packages packageSet, work string) (string, error) {
	tree, kernel, program := filepath.Join(work, "tree"), filepath.Join(work, "kernel"), filepath.Join(work, "program")
	if err := c.download(ctx, nil, filepath.Join(work, "debs"), tree, packages.root...); err != nil {
		return "", err
	}
	if err := c.download(ctx, packages.from, filepath.Join(work, "kernel-deb"), kernel, packages.kernel...); err != nil {
		return "", err
	}
	if err := dropUnlinkable(tree); err != nil {
		return "", err
	}
	if err := checkComplete(tree); err != nil {
		return "", err
	}
	if err := addModules(ctx, kernel, tree, append(kernelModules(), portModules()...)); err != nil {
		return "", err
	}
	finished := filepath.Join(work, "finished")
	if err := os.Mkdir(finished, 0o755); err != nil {
		return "", err
	}
	if packages.program != "" {
		if err := c.addProgram(ctx, packages.program, program, tree, imageIn(finished).Program); err != nil {
			return "", err
		}
	}
	return finished, finish(kernel, tree, imageIn(finished))
}

// addProgram downloads the kernel that is a program, and puts it at to, and its modules into tree.
func (c Cache) addProgram(ctx context.Context, name, dir, tree, to string) error {
	if err := c.download(ctx, nil, dir+"-deb", dir, name); err != nil {
		return err
	}
	// Debian has its modules where no other kernel looks for its own.
	if err := os.Rename(filepath.Join(dir, "usr/lib/uml"), filepath.Join(dir, "lib")); err != nil {
		return err
	}
	if err := addModules(ctx, dir, tree, kernelModules()); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, "usr/bin/linux.uml"), to)
}

func finish(kernel, tree string, image Image) error {
	var kernels []string
	for _, place := range []string{"boot/vmlinuz-*", "lib/modules/*/vmlinuz"} {
		found, err := filepath.Glob(filepath.Join(kernel, place))
		if err != nil {
			return err
		}
		kernels = append(kernels, found...)
	}
	if len(kernels) != 1 {
		return fmt.Errorf("the kernel's packages hold %d kernels", len(kernels))
	}
	if err := os.Rename(kernels[0], image.Kernel); err != nil {
		return err
	}
	return writeRoot(tree, image.Initrd)
}

func writeRoot(tree, initrd string) error {
	f, err := os.Create(initrd)
	if err != nil {
		return err
	}
	defer f.Close()
	buffered := bufio.NewWriterSize(f, 1<<20)
	archive := cpio.NewWriter(buffered)
	if err := writeTree(archive, tree); err != nil {
		return fmt.Errorf("root file system: %w", err)
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func writeTree(archive *cpio.Writer, tree string) error {
	for _, dir := range mergedDirs() {
		if err := archive.Symlink(dir, "usr/"+dir); err != nil {
			return err
		}
	}
	if err := archive.Tree(tree, placeInRoot); err != nil {
		return err
	}
	for _, dir := range []string{"proc", "sys", "dev", "run", "root", "export", "shared"} {
		if err := archive.Dir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := archive.Dir("tmp", 0o777); err != nil {
		return err
	}
	// Debian makes such links when a package is configured.
	if err := archive.Symlink("usr/bin/awk", "mawk"); err != nil {
		return err
	}
	if err := archive.Symlink("usr/bin/sh", "bash"); err != nil {
		return err
	}
	return archive.Finish()
}

// mergedDirs are links into /usr on every Debian system; packages still ship some files below the old names.
func mergedDirs() []string { return []string{"bin", "sbin", "lib", "lib64"} }

// placeInRoot says where a file of the packages goes, or "" to leave it out. Documentation, locales and character sets
// are most of their bytes, and the machine keeps everything in memory.
func placeInRoot(name string) string {
	first, _, _ := strings.Cut(name, "/")
	for _, dir := range mergedDirs() {
		if first == dir {
			return keepFromUsr("usr/" + name)
		}
	}
	switch first {
	case "usr":
		return keepFromUsr(name)
	case "etc":
		return keepFromEtc(name)
	}
	return ""
}

func keepFromUsr(name string) string {
	for _, dir := range []string{"usr/share", "usr/include", "usr/lib/systemd", "usr/lib/udev", "usr/lib/modprobe.d",
		"usr/lib/x86_64-linux-gnu/gconv", "usr/lib/x86_64-linux-gnu/security", "usr/games", "usr/local"} {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return ""
		}
	}
	return name
}

func keepFromEtc(name string) string {
	switch name {
	case "etc", "etc/netconfig", "etc/services", "etc/protocols", "etc/rpc", "etc/mke2fs.conf":
		return name
	}
	return ""
}
