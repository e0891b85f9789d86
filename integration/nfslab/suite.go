//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// suiteFlags are those of all tests together: the short form, unless something else is
// asked for.
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
