package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each mutant changes code that is there, and is told of once.
func TestMutantsFit(t *testing.T) {
	t.Chdir("../..")
	all, err := read(mutants)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, m := range all {
		require.False(t, names[m.name], m.name)
		require.NotEmpty(t, m.edits, m.name)
		names[m.name] = true
		_, err := overlayOf(m, t.TempDir())
		require.NoError(t, err, m.name)
	}
	require.NotEmpty(t, names)
}

func TestReadWhere(t *testing.T) {
	all, err := read("== one\n== two\n@ TestA\n== three\n@ a/b TestB|TestC\n")
	require.NoError(t, err)
	require.Equal(t, []mutant{
		{name: "one", tests: "TestExplore", where: "internal/explore/scenes"},
		{name: "two", tests: "(TestA)$", where: "internal/explore/scenes"},
		{name: "three", tests: "(TestB|TestC)$", where: "a/b"},
	}, all)
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{"- code\n", "== name\n-code\n"} {
		_, err := read(text)
		require.Error(t, err, text)
	}
}

// What a test's output tells.
func TestResult(t *testing.T) {
	const out = "=== CONT  TestExploreA\n    x_test.go:1: 7 schedules, 3 steps\n    x_test.go:1: 12 schedules, 3 steps\n" +
		"        \tError:      \tI2: B believes\n        \tMessages: replay with explore.Choices{3: 1, 9: 2}\n--- FAIL: TestExploreA (1.20s)\n"
	require.Equal(t, "| A | 2 | 12 | 1.20s | I2", result(out))
	require.Empty(t, result("--- PASS: TestExploreA (1.20s)\nok"))
	require.Equal(t, "| | | | | panic", result("panic: no"))
}
