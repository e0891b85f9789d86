//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// testPlan is a "go test" command line, split into a build and a run.
type testPlan struct {
	pkg   string   // as given; empty means all of integration/nfs
	build []string // flags of go test -c
	run   []string // flags of the test binary
}

const testBinary = "lab.test"

func testCommand(ctx context.Context, lab lab, args []string) (int, error) {
	opts, rest, err := parseOptions(args)
	if err != nil {
		return 0, err
	}
	scratch, err := os.MkdirTemp("", "nfslab-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	plan := planTest(rest)
	source := os.Getenv("MULTILOCK_LAB_SOURCE")
	if source != "" {
		more, err := companions(ctx, lab, source, scratch)
		if err != nil {
			return 0, err
		}
		opts.files = append(opts.files, more...)
	}
	if plan.pkg == "" && source == "" {
		return 0, errors.New("test: name a package, or use scripts/nfslab")
	}
	dir, pkg, err := locatePackage(cmp.Or(plan.pkg, filepath.Join(source, "integration", "nfs")))
	if err != nil {
		return 0, err
	}
	binary := filepath.Join(scratch, testBinary)
	if err := buildTest(ctx, dir, pkg, binary, plan.build); err != nil {
		return 0, err
	}
	opts.files = append(opts.files, binary)
	if testdata := filepath.Join(dir, "testdata"); pkg == "." && isDir(testdata) {
		opts.files = append(opts.files, testdata)
	}
	return lab.run(ctx, opts, newJob(opts, append([]string{"./" + testBinary}, plan.run...)))
}

// planTest sorts flags as the go command does: an optional package first, then flags for the build or the
// test binary.
func planTest(args []string) testPlan {
	var plan testPlan
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		plan.pkg, args = args[0], args[1:]
	}
	for len(args) > 0 {
		name, _, inline := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		if name == "args" {
			plan.run = append(plan.run, args[1:]...)
			break
		}
		width := 1
		if !inline && !isBool(name) {
			width = min(2, len(args))
		}
		if isBuildFlag(name) {
			plan.build = append(plan.build, args[:width]...)
		} else {
			plan.run = append(plan.run, testFlag(args[:width])...)
		}
		args = args[width:]
	}
	defaults := defaultFlags
	if plan.pkg == "" {
		defaults = suiteFlags
	}
	plan.run = slices.Insert(plan.run, 0, defaults(plan.run)...)
	return plan
}

// testFlag converts -run X to the test binary's form, -test.run X.
func testFlag(flag []string) []string {
	name := strings.TrimLeft(flag[0], "-")
	if !strings.HasPrefix(name, "test.") {
		name = "test." + name
	}
	return append([]string{"-" + name}, flag[1:]...)
}

// defaultFlags are the flags that the go command adds itself.
func defaultFlags(given []string) []string {
	defaults := []string{"-test.paniconexit0"}
	if !isGiven(given, "-test.timeout") {
		defaults = append(defaults, "-test.timeout="+(10*time.Minute).String())
	}
	return defaults
}

func isGiven(flags []string, flag string) bool {
	return slices.ContainsFunc(flags, func(arg string) bool { return strings.HasPrefix(arg, flag) })
}

func isBool(name string) bool {
	return slices.Contains([]string{"v", "short", "failfast", "cover", "trimpath", "test.v", "test.short", "test.failfast"}, name)
}

func isBuildFlag(name string) bool {
	return slices.Contains([]string{"tags", "ldflags", "gcflags", "asmflags", "mod", "trimpath", "cover", "covermode", "coverpkg"}, name)
}

// locatePackage returns the directory to build in, and the package relative to it. A directory may belong
// to another module than the current one, so it is built from inside.
func locatePackage(pkg string) (dir, name string, err error) {
	if isDir(pkg) {
		dir, err := filepath.Abs(pkg)
		return dir, ".", err
	}
	return ".", pkg, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func buildTest(ctx context.Context, dir, pkg, binary string, flags []string) error {
	args := append([]string{"test", "-c", "-o", binary}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // the machine may have another version of the C library, or none
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build tests of %s: %w", pkg, err)
	}
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("%s has no tests", pkg)
	}
	return nil
}

// suiteFlags are the flags for running all tests: -test.short and a long timeout, unless others are given.
func suiteFlags(given []string) []string {
	defaults := []string{"-test.paniconexit0"}
	if !isGiven(given, "-test.timeout") {
		defaults = append(defaults, "-test.timeout="+(3*time.Hour).String())
	}
	if !isGiven(given, "-test.short") {
		defaults = append(defaults, "-test.short")
	}
	return defaults
}

// companions are files that tests of this repository expect in the machine: the multilock binary, and a
// peer that locks like the Python MultiLock. Without Python, those tests skip.
func companions(ctx context.Context, lab lab, source, scratch string) ([]string, error) {
	program := filepath.Join(scratch, "multilock")
	// Omit what a lock on NFS does not use: loading it would take most of a start on an emulated processor.
	if err := clitest.Build(filepath.Join(source, "cmd", "multilock"), program, clitest.Small); err != nil {
		return nil, err
	}
	files := []string{program, filepath.Join(source, "multilock", "fslock", "testdata", "multilock_peer.py")}
	python := filepath.Join(lab.cache.Dir, "image-python")
	unpack := exec.CommandContext(ctx, filepath.Join(source, "integration", "nfslab", "python"), python)
	unpack.Stdout, unpack.Stderr = os.Stderr, os.Stderr
	if err := unpack.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "nfslab: no python3 for the machine:", err)
		return files, nil
	}
	return slices.Concat(files, []string{filepath.Join(python, "python")}), nil
}
