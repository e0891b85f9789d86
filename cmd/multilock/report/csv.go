package report

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"time"
)

// CSV returns a line for each run of each job, and one for each job without runs. harmless makes a text safe
// to show.
func CSV(t *Timeline, harmless func(string) string) ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	lines := [][]string{{"name", "state", "attempt", "host", "user", "start", "end", "duration_seconds", "exit", "signal", "why", "command"}}
	for _, j := range t.Jobs {
		if len(j.Runs) == 0 && !j.chunk {
			lines = append(lines, []string{j.Name, string(j.State), some(j.Attempt), "", "", "", "", "", "", "", j.Why, j.Command})
		}
		for _, r := range j.Runs {
			lines = append(lines, []string{j.Name, string(r.State), some(r.Attempt), r.Host, r.User, moment(r.Start), moment(r.End), r.seconds(), r.exit(), r.Signal, r.Why, r.Command})
		}
	}
	for _, line := range lines {
		for i := range line {
			line[i] = harmless(line[i])
		}
		if err := w.Write(line); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return out.Bytes(), w.Error()
}

func some(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

func (r *Run) exit() string {
	if r.Exit == nil {
		return ""
	}
	return strconv.Itoa(*r.Exit)
}

func (r *Run) seconds() string {
	if r.Start.IsZero() || r.End.IsZero() {
		return ""
	}
	return strconv.FormatFloat(r.End.Sub(r.Start).Seconds(), 'f', 6, 64)
}
