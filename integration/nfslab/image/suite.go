//go:build linux

package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// archive is where apt-get has packages from, as options of it. None mean what this machine is installed from.
type archive []string

// kernelArchive is the suite of the kernel, which apt-get knows here alone: this machine's own lists and packages stay as they are.
func (c Cache) kernelArchive(ctx context.Context) (archive, error) {
	if c.Kernel == "" {
		return nil, nil
	}
	dir := filepath.Join(c.Dir, "apt-"+filepath.Base(c.Kernel))
	for _, sub := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	from := archive{
		"-o", "Dir::Etc::SourceList=" + filepath.Join(dir, "sources.list"), "-o", "Dir::Etc::SourceParts=/dev/null",
		"-o", "Dir::State::Lists=" + filepath.Join(dir, "lists"), "-o", "Dir::Cache=" + filepath.Join(dir, "cache"),
		"-o", "APT::Sandbox::User=root", "-o", "APT::Default-Release=" + c.Kernel,
	}
	mirror, err := debianMirror(ctx)
	if err != nil {
		return nil, err
	}
	suites := c.Kernel
	if base, more := strings.CutSuffix(c.Kernel, "-backports"); more { // what they depend on is in the suite that they are for
		suites += " " + base
	}
	var lines strings.Builder
	for suite := range strings.FieldsSeq(suites) {
		fmt.Fprintf(&lines, "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n", mirror, suite)
	}
	if err := os.WriteFile(filepath.Join(dir, "sources.list"), []byte(lines.String()), 0o600); err != nil {
		return nil, err
	}
	_, err = run(ctx, "", "apt-get", append(from, "update", "-qq")...)
	return from, err
}

// debianMirror is where this machine has Debian's packages from.
func debianMirror(ctx context.Context) (string, error) {
	sites, err := run(ctx, "", "apt-get", "indextargets", "--format", "$(SITE)", "Identifier: Packages", "Origin: Debian")
	for site := range strings.FieldsSeq(sites) {
		if !strings.HasSuffix(site, "-security") {
			return site, nil
		}
	}
	return "", errors.Join(errors.New("apt-get knows no mirror of Debian"), err)
}
