//go:build unix

package main_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlots(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	first, second := s.hold("x", "--slots", "2"), s.hold("x", "--slots", "2")
	locks := s.locks()
	require.Len(t, locks, 2)
	require.Equal(t, "x#slot-1", locks[0].Name)
	require.Equal(t, "x#slot-2", locks[1].Name)

	got := s.run("run", "-n", "x", "--slots", "2", "--", "true")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, `all 2 slots of "x" are held`)
	require.Equal(t, ended{}, s.run("run", "-n", "x", "--slots", "2", "-q", "-E", "0", "--", "true"))
	got = s.run("run", "-n", "x", "--slots", "2", "--wait", "200ms", "--", "true")
	require.Equal(t, 124, got.code)
	require.Contains(t, got.stderr, "all 2 slots")

	waiting := s.start("run", "-n", "x", "--slots", "2", "--wait", "forever", "--", "sh", "-c", "echo $MULTILOCK_NAME $MULTILOCK_SLOT")
	waiting.Err.Expect(t, `waiting for one of the 2 slots of "x"`)
	require.Zero(t, first.end().code)
	got = waiting.wait()
	require.Zero(t, got.code)
	require.Contains(t, []string{"x 1\n", "x 2\n"}, got.stdout)
	require.Zero(t, second.end().code)
	require.Empty(t, s.locks())
}

func TestSlotInTheReport(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.run("run", "-n", "x", "--slots", "1", "--json", "--", "true")
	var report struct {
		Name string
		Slot int
	}
	require.NoError(t, json.Unmarshal([]byte(got.stderr), &report))
	require.Equal(t, "x#slot-1", report.Name)
	require.Equal(t, 1, report.Slot)
	require.Equal(t, []string{"acquired", "released"}, happened(s.history("x#slot-1")))
}

func TestJobWithoutSlotsHasNoNumber(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.NotContains(t, s.must("run", "--", "env"), "MULTILOCK_SLOT")
}
