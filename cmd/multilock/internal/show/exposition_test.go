package show_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/show"
)

func TestExposition(t *testing.T) {
	text := show.Exposition([]show.Family{
		{Name: "empty", Help: "Is left out.", Type: "gauge"},
		{Name: "runs_total", Help: "Back\\slash\nand line.", Type: "counter", Samples: []show.Sample{
			{Labels: map[string]string{"name": "b", "group": "g"}, Value: 2},
			{Labels: map[string]string{"name": "a \"quoted\"\n\\\xff", "group": "g"}, Value: 12345678901},
		}},
		{Name: "took_seconds", Help: "Time.", Type: "summary", Samples: []show.Sample{{Suffix: "_sum", Value: 0.25}, {Suffix: "_count", Value: 3}}},
	})
	require.Equal(t, `# HELP runs_total Back\\slash\nand line.
# TYPE runs_total counter
runs_total{group="g",name="a \"quoted\"\n\\�"} 12345678901
runs_total{group="g",name="b"} 2
# HELP took_seconds Time.
# TYPE took_seconds summary
took_seconds_sum 0.25
took_seconds_count 3
`, string(text))
}
