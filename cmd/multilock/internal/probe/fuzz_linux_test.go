package probe

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

// For any output of Slurm's commands, the holder has ended only if each line of an answer has the requested
// format and says so.
func FuzzSlurm(f *testing.F) {
	for _, seed := range [][3]string{
		{"4711 CANCELLED n[1-3]\n", "n1\nn2\nn3\n", "n2 idle\nn2 mixed\n"},
		{"4711 COMPLETED n2", "n2", "n2 allocated"},
		{"4711 RUNNING n2\n", "n2\n", "n2 idle\n"},
		{"4711 PENDING \n", "", ""},
		{"4710 RUNNING n1\n4711 FAILED n2\n4712 FAILED n2\n", "n2\n", "n2 idle\n"},
		{"4711 FAILED n2\n4711 RUNNING n2\n", "n2\n", "n2 idle\n"},
		{"4711 TIMEOUT n2 n3\n", "n2\n", "n2 idle\n"},
		{"4711 TIMEOUT n2\n", "n1 n2\n", "n2 idle\n"},
		{"4711 TIMEOUT n2\n", "n2\n", "n2 idle n2 down\n"},
		{"4711 TIMEOUT n2\n", "n2\n", "n2\nidle\n"},
		{"4711 TIMEOUT n2\r\n", "n2\r\n", "n2 idle\r\n"},
		{"4711 TIMEOUT n2\n", "n2\n", "n2 idle\nn2 idle*\n"},
		{"\x004711 TIMEOUT \xff\n", "\n", "n2 \u00a0idle\n"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	over := regexp.MustCompile(`^4711 (COMPLETED|FAILED|CANCELLED|TIMEOUT|OUT_OF_MEMORY|DEADLINE|PREEMPTED) +[0-9A-Za-z][-0-9A-Za-z._,\[\]]*$`)
	up := regexp.MustCompile(`^n2 +(idle|mixed|allocated|planned|reserved)$`)
	f.Fuzz(func(t *testing.T, squeue, hostnames, sinfo string) {
		answers := map[string]string{"squeue": squeue, "scontrol": hostnames, "sinfo": sinfo}
		s := slurm{
			getenv: func(string) string { return "c" },
			output: func(_ context.Context, vars []string, args ...string) (string, error) {
				require.Empty(t, vars)
				for _, arg := range args {
					require.NotContains(t, arg, "\x00", "an argument cannot contain it")
				}
				if answers[args[0]] == "" {
					return "", errors.New("it failed")
				}
				return answers[args[0]], nil
			},
		}
		why, err := s.ask(t.Context(), source.Record{Claim: source.Claim{Holder: source.Holder{Batch: job4711}}})
		require.Equal(t, err == nil, why != "")
		if err != nil {
			return
		}
		require.Len(t, linesLike(squeue, regexp.MustCompile(`^4711( |$)`)), 1)
		require.Len(t, linesLike(squeue, over), 1)
		require.Len(t, linesLike(hostnames, regexp.MustCompile(`^n2$`)), 1)
		require.NotEmpty(t, linesLike(sinfo, up))
		require.Len(t, linesLike(sinfo, up), len(linesLike(sinfo, regexp.MustCompile(`\S`))))
	})
}

// linesLike returns the trimmed lines that match a form.
func linesLike(text string, form *regexp.Regexp) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); form.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}
