//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// suitePackages are the directories of integration/ whose tests "test" runs
// without a package, one after the other in one machine.
func suitePackages() []string { return []string{"nfs", "soak"} }

// suite runs the tests of all packages. The tool of that name in the machine
// sums up how they went.
func suite(ctx context.Context, lab lab, opts options, plan testPlan, source, scratch string) (int, error) {
	if source == "" {
		return 0, errors.New("test: name a package, or use scripts/nfslab")
	}
	command := []string{"suite"}
	for _, name := range suitePackages() {
		binary := filepath.Join(scratch, name+".test")
		if err := buildTest(ctx, filepath.Join(source, "integration", name), ".", binary, plan.build); err != nil {
			return 0, err
		}
		opts.files = append(opts.files, binary)
		command = append(command, name)
	}
	return lab.run(ctx, opts, newJob(opts, append(append(command, "--"), plan.run...)))
}

// suiteFlags are those of every package of the suite: the short form, unless
// something else is asked for.
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

// companions are files that tests of this repository look for in the machine: the
// command line, and what plays the Python MultiLock. Without Python, they skip.
func companions(ctx context.Context, lab lab, source, scratch string) ([]string, error) {
	program := filepath.Join(scratch, "multilock")
	build := exec.CommandContext(ctx, "go", "-C", source, "build", "-o", program, "./cmd/multilock")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build the command: %w", err)
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
