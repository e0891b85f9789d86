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

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{"- code\n", "== name\n-code\n"} {
		_, err := read(text)
		require.Error(t, err, text)
	}
}

// What a test's output tells.
func TestResult(t *testing.T) {
	const out = "=== RUN   TestA\n    x_test.go:1: 12 schedules, 3 steps\n        \tError:      \tI2: B believes\n--- FAIL: TestA\n" +
		"=== RUN   TestB\n    x_test.go:1: 99 schedules, 3 steps\n--- PASS: TestB\n=== RUN   TestC\npanic: no\n"
	for test, want := range map[string][2]string{"TestA": {"12", "I2"}, "TestB": {"", ""}, "TestC": {"panic", "panic"}, "TestD": {"-", ""}} {
		cell, why := result(out, test)
		require.Equal(t, want, [2]string{cell, why}, test)
	}
}
