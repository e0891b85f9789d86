package world

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// layer returns a directory with these packages and those of their dependencies that this machine
// lacks, unpacked. It is made once and kept in the user's cache.
func layer(packages []string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "multilock-world")
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // packages are no secret, and other users of the world read them
		return "", err
	}
	unlock, err := lock(cache)
	if err != nil {
		return "", err
	}
	defer unlock()
	dir, err := ensure(cache, packages)
	if err != nil { // the archive no longer has a version in old lists; apt has now fetched new ones
		dir, err = ensure(cache, packages)
	}
	return dir, err
}

// ensure makes the layer with the versions that apt selects, unless it is in the cache.
func ensure(cache string, packages []string) (string, error) {
	wanted, err := resolve(packages)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(wanted, " "))))[:16])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := unpack(dir+".new", wanted); err != nil {
		return "", err
	}
	return dir, os.Rename(dir+".new", dir)
}

// lock keeps two tests from making the same layer at once.
func lock(cache string) (unlock func(), err error) {
	file, err := os.Create(filepath.Join(cache, "lock"))
	if err != nil {
		return nil, err
	}
	return func() { _ = file.Close() }, syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
}

// resolve returns what apt would install, as PACKAGE=VERSION.
func resolve(packages []string) ([]string, error) {
	out, err := apt("", append([]string{"-s", "--no-install-recommends", "install"}, packages...)...)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, match := range regexp.MustCompile(`(?m)^Inst (\S+) (?:\[\S+\] )?\((\S+)`).FindAllStringSubmatch(out, -1) {
		found = append(found, match[1]+"="+match[2])
	}
	return found, nil
}

func unpack(dir string, packages []string) error {
	archives, err := os.MkdirTemp("", "multilock-world-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(archives) }()
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	// Debian's root has symbolic links for these, which a directory in an upper layer would hide.
	for _, merged := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.MkdirAll(filepath.Join(dir, "usr", merged), 0o755); err != nil { //nolint:gosec // a root is readable
			return err
		}
		if err := os.Symlink("usr/"+merged, filepath.Join(dir, merged)); err != nil {
			return err
		}
	}
	if len(packages) > 0 {
		if _, err := apt(archives, append([]string{"-o", "APT::Sandbox::User=root", "download"}, packages...)...); err != nil {
			return err
		}
	}
	const each = `for deb in *.deb; do test -e "$deb" || continue; dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$0"; done`
	_, err = output(archives, "bash", "-e", "-o", "pipefail", "-c", each, dir)
	return err
}

// apt runs apt-get, and on failure updates the lists and retries once: missing lists, and lists with
// versions that are no longer served, both look like missing packages.
func apt(dir string, args ...string) (string, error) {
	out, first := output(dir, "apt-get", append([]string{"-qq"}, args...)...)
	if first == nil {
		return out, nil
	}
	if _, err := output("", "apt-get", "-qq", "-o", "Acquire::Retries=3", "update"); err != nil {
		return "", errors.Join(first, err)
	}
	return output(dir, "apt-get", append([]string{"-qq"}, args...)...)
}

func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...) //nolint:gosec // of this package
	cmd.Dir = dir
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, problem.String())
	}
	return string(out), nil
}
