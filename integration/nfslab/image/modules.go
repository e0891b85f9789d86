//go:build linux

package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kernelModules are those the machine loads or the kernel asks for by itself; their dependencies come along.
func kernelModules() []string {
	return []string{
		"nfsd", "nfs", "nfsv3", "nfsv4", "nfs_layout_nfsv41_files", "nfs_layout_flexfiles",
		"ext4", "crc32c_generic", "loop", // the exported file system
		"veth", "bridge", "sch_netem", "sch_ingress", "cls_matchall", "cls_u32", "act_gact", // the network and its faults
		"tcp_diag", "inet_diag", // ss
		"rpcsec_gss_krb5", "cts", // Kerberos
		"overlay",
	}
}

// formerModules are those that newer kernels have as a part of something else.
func formerModules() []string { return []string{"crc32c_generic"} }

// portModules are for the serial port to the launcher, where the machine is an emulated one.
func portModules() []string { return []string{"virtio_pci", "virtio_console"} }

// addModules puts those modules of the unpacked kernel package into tree, with the indexes that modprobe reads.
func addModules(ctx context.Context, kernel, tree string, modules []string) error {
	version, err := kernelVersion(kernel)
	if err != nil {
		return err
	}
	if _, err := run(ctx, "", "depmod", "-b", kernel, version); err != nil {
		return err
	}
	from, to := filepath.Join(kernel, "lib/modules", version), filepath.Join(tree, "lib/modules", version)
	files, err := moduleFiles(from, modules)
	if err != nil {
		return err
	}
	files = append(files, "modules.builtin", "modules.builtin.modinfo", "modules.order")
	for _, file := range files {
		if err := copyFile(filepath.Join(to, file), filepath.Join(from, file)); err != nil {
			return fmt.Errorf("kernel module: %w", err)
		}
	}
	_, err = run(ctx, "", "depmod", "-b", tree, version)
	return err
}

func kernelVersion(kernel string) (string, error) {
	// Newer packages have nothing but usr; depmod wants it here.
	if err := os.Symlink("usr/lib", filepath.Join(kernel, "lib")); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	versions, err := os.ReadDir(filepath.Join(kernel, "lib/modules"))
	if err != nil {
		return "", err
	}
	if len(versions) != 1 {
		return "", fmt.Errorf("kernel package holds modules of %d kernels", len(versions))
	}
	return versions[0].Name(), nil
}

// moduleFiles returns the files of modules and of all they depend on, relative to dir.
func moduleFiles(dir string, modules []string) ([]string, error) {
	loadable, err := loadableModules(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return nil, err
	}
	builtin, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return nil, err
	}
	var files []string
	for _, name := range modules {
		needed, ok := loadable[name]
		if !ok && !strings.Contains(string(builtin), "/"+name+".ko\n") && !slices.Contains(formerModules(), name) {
			return nil, fmt.Errorf("the kernel has no module %s", name)
		}
		files = append(files, needed...)
	}
	return files, nil
}

// loadableModules maps the names of modules to their files, their own first; modules.dep lists dependencies in full.
func loadableModules(modulesDep string) (map[string][]string, error) {
	index, err := os.ReadFile(modulesDep)
	if err != nil {
		return nil, err
	}
	files := map[string][]string{}
	for line := range strings.Lines(string(index)) {
		file, needs, _ := strings.Cut(strings.TrimSpace(line), ":")
		name, _, _ := strings.Cut(filepath.Base(file), ".ko") // newer kernels have them compressed
		files[strings.ReplaceAll(name, "-", "_")] = append([]string{file}, strings.Fields(needs)...)
	}
	return files, nil
}

func copyFile(to, from string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	defer target.Close()
	if _, err := io.Copy(target, source); err != nil {
		return err
	}
	return target.Close()
}
