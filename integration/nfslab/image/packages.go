//go:build linux

package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// packageSet names packages as NAME=VERSION.
type packageSet struct {
	suite   string  // that the kernel is of; empty: this machine's own
	from    archive // where that suite is
	kernel  []string
	program string // the kernel as a program; may be empty
	root    []string
}

// rootPackages are what the machine needs; apt adds what they depend on. Real tools rather than busybox: its applets
// differ in options, and win over programs of the same name.
func rootPackages() []string {
	return []string{
		"bash", "coreutils", "e2fsprogs", "findutils", "grep", "hostname", "iproute2", "kmod",
		"krb5-admin-server", "krb5-kdc", "krb5-user", "mawk", "mount",
		"ncurses-base", "netbase", "nfs-common", "nfs-kernel-server", "procps", "rpcbind", "sed", "strace", "sysvinit-utils",
		"tar", "util-linux",
	}
}

// leftOut matches dependencies of installing and configuring packages, which never happens in the machine. Programs
// that turn out to need one of them are left out too.
func leftOut() *regexp.Regexp {
	return regexp.MustCompile(`^(adduser|debconf|dpkg|init-system-helpers|lsb-base|media-types|passwd|sensible-utils|` +
		`ucf|usrmerge|libgnutls.*|libldap.*|libp11-kit.*|libunistring.*|perl.*|libperl.*|lib.*-perl|` +
		`python3.*|libpython3.*)$`)
}

const (
	kernelPackage  = "linux-image-cloud-amd64"
	programPackage = "user-mode-linux"
)

// hostTools maps the programs a build and a run need to the packages that bring them.
func hostTools() map[string]string {
	return map[string]string{"qemu-system-x86_64": "qemu-system-x86", "depmod": "kmod", "dpkg-deb": "dpkg"}
}

func (c Cache) ensureHostTools(ctx context.Context) error {
	var missing []string
	for tool, pkg := range hostTools() {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	if os.Geteuid() != 0 {
		return fmt.Errorf("this needs packages: run apt-get install %s", strings.Join(missing, " "))
	}
	fmt.Fprintf(c.Log, "installing %s\n", strings.Join(missing, " "))
	install := append([]string{"-o", "DPkg::Lock::Timeout=300", "install", "-y", "-qq", "--no-install-recommends"}, missing...)
	return c.withFreshLists(ctx, func() error {
		_, err := run(ctx, "", "apt-get", install...)
		return err
	})
}

// resolve asks apt what it would install on an empty system.
func (c Cache) resolve(ctx context.Context) (packageSet, error) {
	from, err := c.kernelArchive(ctx)
	if err != nil {
		return packageSet{}, err
	}
	var set packageSet
	err = c.withFreshLists(ctx, func() error {
		root, err := simulateInstall(ctx, nil, rootPackages()...)
		if err != nil {
			return err
		}
		kernel, err := simulateInstall(ctx, from, kernelPackage)
		if err != nil {
			return err
		}
		set, err = choose(root, kernel)
		return err
	})
	if err != nil {
		return set, err
	}
	set.suite, set.from = c.Kernel, from
	set.program, err = candidate(ctx, programPackage)
	if err != nil && ctx.Err() == nil { // the machine can be emulated all the same
		fmt.Fprintf(c.Log, "no %s: %v\n", programPackage, err)
		err = nil
	}
	return set, err
}

func choose(root, kernel []string) (packageSet, error) {
	parts := regexp.MustCompile(`^linux-(image|base|binary|modules)-[0-9]`) // newer ones come in pieces
	kernel = slices.DeleteFunc(kernel, func(pkg string) bool { return !parts.MatchString(pkg) })
	if len(kernel) == 0 {
		return packageSet{}, fmt.Errorf("%s depends on no kernel", kernelPackage)
	}
	skip := leftOut()
	root = slices.DeleteFunc(root, func(pkg string) bool {
		name, _, _ := strings.Cut(pkg, "=")
		return skip.MatchString(name)
	})
	return packageSet{kernel: kernel, root: root}, nil
}

// candidate returns NAME=VERSION of what apt would install of a package, without what it depends on.
func candidate(ctx context.Context, name string) (string, error) {
	packages, err := simulateInstall(ctx, nil, name)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(packages, func(p string) bool { return strings.HasPrefix(p, name+"=") })
	if at < 0 {
		return "", fmt.Errorf("apt would not install %s", name)
	}
	return packages[at], nil
}

func simulateInstall(ctx context.Context, from archive, names ...string) ([]string, error) {
	args := slices.Concat(from, []string{"-s", "-qq", "-o", "Dir::State::status=/dev/null", "--no-install-recommends", "install"}, names)
	out, err := run(ctx, "", "apt-get", args...)
	if err != nil {
		return nil, err
	}
	var packages []string
	for _, match := range regexp.MustCompile(`(?m)^Inst (\S+) \((\S+)`).FindAllStringSubmatch(out, -1) {
		packages = append(packages, match[1]+"="+match[2])
	}
	slices.Sort(packages)
	return packages, nil
}

// download fetches packages into dir and unpacks them all into root.
func (c Cache) download(ctx context.Context, from archive, dir, root string, packages ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// The sandbox user of apt may not be able to enter the cache directory.
	args := slices.Concat(from, []string{"-qq", "-o", "APT::Sandbox::User=root", "download"}, packages)
	err := c.withFreshLists(ctx, func() error {
		_, err := run(ctx, dir, "apt-get", args...)
		return err
	})
	if err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if _, err := run(ctx, "", "dpkg-deb", "-x", archive, root); err != nil {
			return err
		}
	}
	return nil
}

// withFreshLists does what needs apt's package lists, and once more after updating them if it did not work: lists that
// were never fetched and lists that name versions no longer served both look like missing packages.
func (c Cache) withFreshLists(ctx context.Context, do func() error) error {
	first := do()
	if first == nil {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w (apt-get update, as root, may help)", first)
	}
	fmt.Fprintln(c.Log, "updating package lists")
	if err := updateLists(ctx); err != nil {
		return errors.Join(first, err)
	}
	return do()
}

// updateLists tries for a while, since apt does not wait for another update to finish.
func updateLists(ctx context.Context) error {
	const attempts, pause = 20, 3 * time.Second
	var err error
	for range attempts {
		if _, err = run(ctx, "", "apt-get", "update", "-qq"); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return err
}

// run returns a command's standard output; its standard error is part of the error.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args[:min(len(args), 4)], " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
