package span_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/span"
)

func TestParseAndFormat(t *testing.T) {
	for text, c := range map[string]struct {
		value time.Duration
		short string
	}{
		"90s":    {90 * time.Second, "1m30s"},
		"90":     {90 * time.Second, "1m30s"},
		"0":      {0, "0s"},
		"1h":     {time.Hour, "1h"},
		"60m0s":  {time.Hour, "1h"},
		"7h30m":  {450 * time.Minute, "7h30m"},
		"1h0m5s": {time.Hour + 5*time.Second, "1h0m5s"},
		"10m":    {10 * time.Minute, "10m"},
		"24h":    {span.Day, "1d"},
		"1.5d":   {36 * time.Hour, "36h"},
		"20ms":   {20 * time.Millisecond, "20ms"},
	} {
		value, err := span.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, c.value, value, text)
		require.Equal(t, c.short, span.Format(value), text)
	}
	for _, text := range []string{"", "soon", "d", "-1s", "-1", "NaN", "1e300", "1e300d", "infd", "1 h"} {
		_, err := span.Parse(text)
		require.Error(t, err, text)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"90s", "1.5d", "0", "1e9", "-3h", "1h0m", "2562047h47m16.854775807s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := span.Parse(text)
		if err != nil {
			return
		}
		again, err := span.Parse(span.Format(value))
		require.NoError(t, err)
		require.Equal(t, value, again)
	})
}
