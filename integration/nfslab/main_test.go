//go:build linux

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOptionsEndWhereTheCommandBegins(t *testing.T) {
	opts, rest, err := parseOptions([]string{"--files", "a", "b", "--timeout", "1.5", "--env=X=a=b", "--stdin", "--", "cmd", "--out"})
	require.NoError(t, err)
	require.Equal(t, []string{"cmd", "--out"}, rest)
	require.Equal(t, []string{"a", "b"}, opts.files)
	require.Equal(t, 1500*time.Millisecond, opts.timeout)
	require.Equal(t, []string{"X=a=b"}, opts.env)
	require.True(t, opts.stdin)
	require.Equal(t, defaultMemoryMB, opts.memoryMB)
}

func TestBadOptions(t *testing.T) {
	for _, args := range [][]string{{"--nope"}, {"--out"}, {"--timeout", "soon"}, {"--memory", "lots"}} {
		_, _, err := parseOptions(args)
		require.Error(t, err, "%v", args)
	}
}

func TestPlanOfGoTestFlags(t *testing.T) {
	const noExit, limit = "-test.paniconexit0", "-test.timeout=10m0s"
	for _, c := range []struct {
		args []string
		want testPlan
	}{
		{nil, testPlan{run: []string{noExit, "-test.timeout=3h0m0s", "-test.short"}}},
		{[]string{"-short=false", "-timeout=1h"}, testPlan{run: []string{noExit, "-test.short=false", "-test.timeout=1h"}}},
		{[]string{"./x", "-v", "-run", "A"}, testPlan{pkg: "./x", run: []string{noExit, limit, "-test.v", "-test.run", "A"}}},
		{[]string{"./x", "-tags", "a b", "-count=2"}, testPlan{pkg: "./x", build: []string{"-tags", "a b"}, run: []string{noExit, limit, "-test.count=2"}}},
		{[]string{"./x", "-timeout", "1m"}, testPlan{pkg: "./x", run: []string{noExit, "-test.timeout", "1m"}}},
		{[]string{"./x", "-test.run=B", "-args", "-v", "x"}, testPlan{pkg: "./x", run: []string{noExit, limit, "-test.run=B", "-v", "x"}}},
	} {
		require.Equal(t, c.want, planTest(c.args), "%v", c.args)
	}
}

func TestReportGivesTheCodeOfAFailure(t *testing.T) {
	require.Equal(t, 3, report(3, nil))
	require.Equal(t, exitLab, report(0, errors.New("plain")))
	require.Equal(t, exitHung, report(0, fmt.Errorf("wrapped: %w", failure{exitHung, errors.New("inner")})))
}

func TestOutputIsUnpackedOverThatOfAnEarlierRun(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("old and longer"), 0o400))
	out := newOutputDir(dir)
	archive := tar.NewWriter(out)
	add(t, archive, &tar.Header{Name: "d", Typeflag: tar.TypeDir, Mode: 0o755}, "")
	add(t, archive, &tar.Header{Name: "d/link", Typeflag: tar.TypeSymlink, Linkname: "../f"}, "")
	add(t, archive, &tar.Header{Name: "f", Typeflag: tar.TypeReg, Mode: 0o640, Size: 3}, "new")
	require.NoError(t, archive.Close())
	require.NoError(t, out.Close())

	content, err := os.ReadFile(filepath.Join(dir, "d/link"))
	require.NoError(t, err)
	require.Equal(t, "new", string(content))
	info, err := os.Stat(filepath.Join(dir, "f"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), info.Mode().Perm())
}

func TestOutputStaysBelowItsDirectory(t *testing.T) {
	parent := t.TempDir()
	for _, name := range []string{"../escaped", "/../escaped"} {
		out := newOutputDir(filepath.Join(parent, "out"))
		archive := tar.NewWriter(out)
		add(t, archive, &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: 1}, "x")
		require.NoError(t, archive.Close())
		require.Error(t, out.Close(), name)
		require.NoFileExists(t, filepath.Join(parent, "escaped"))
	}
}

func TestOutputThatNobodyWantsIsDropped(t *testing.T) {
	out := newOutputDir("")
	_, err := out.Write([]byte("not even an archive"))
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

func add(t *testing.T, archive *tar.Writer, header *tar.Header, content string) {
	t.Helper()
	require.NoError(t, archive.WriteHeader(header))
	_, err := archive.Write([]byte(content))
	require.NoError(t, err)
}
