package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMoments(t *testing.T) {
	t.Parallel()
	berlin := time.FixedZone("CET", 3600)
	now := time.Date(2026, 5, 31, 12, 0, 0, 0, berlin)
	for text, want := range map[string]string{
		"90": "2026-05-31T11:58:30+01:00", "2h": "2026-05-31T10:00:00+01:00", "7d": "2026-05-24T12:00:00+01:00", "0": "2026-05-31T12:00:00+01:00",
		"2026-05-01": "2026-05-01T00:00:00+01:00", "2026-05-01 14:30": "2026-05-01T14:30:00+01:00", "2026-05-01 14:30:05": "2026-05-01T14:30:05+01:00",
		"2026-05-01T14:30": "2026-05-01T14:30:00+01:00", "2026-05-01T14:30:05Z": "2026-05-01T14:30:05Z", "2026-05-01T14:30:05+02:00": "2026-05-01T14:30:05+02:00",
		"14:30": "2026-05-31T14:30:00+01:00", "04:05:06": "2026-05-31T04:05:06+01:00",
	} {
		got, err := momentOf(text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, got.Format(time.RFC3339), text)
	}
	for _, text := range []string{"", "yesterday", "2026-13-01", "25:00", "-1h", "2026-05-01 14:30 CET"} {
		_, err := momentOf(text, now)
		require.ErrorContains(t, err, "is no time; write", text)
	}
}

func TestStamped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`: `{"schema":1}`, `{"a":1}`: `{"schema":1,"a":1}`, "{\n  \"a\": 1\n}": "{\n  \"schema\": 1,\n  \"a\": 1\n}", `[1]`: `[1]`,
	} {
		require.Equal(t, want, string(Stamped([]byte(text))))
	}
}

func TestAsksForJSON(t *testing.T) {
	t.Parallel()
	require.True(t, AsksForJSON([]string{"multilock", "status", "--json"}))
	require.False(t, AsksForJSON([]string{"multilock", "run", "--", "x", "--json"}))
	require.False(t, AsksForJSON([]string{"multilock", "status", "json"}))
}
