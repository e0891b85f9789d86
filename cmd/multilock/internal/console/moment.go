package console

import (
	"fmt"
	"time"

	"github.com/multilock/go/internal/span"
)

// Moment is a flag's value: a point in time, given directly or as a duration before now.
type Moment struct {
	Value time.Time
	Given bool
}

// MomentForms lists the accepted forms of a moment.
const MomentForms = "2h or 7d ago, 2026-05-31, 2026-05-31 14:30, 14:30 (today), or 2026-05-31T14:30:00Z"

// Set parses the value. Without a time zone it is in that of this host.
func (m *Moment) Set(text string) (err error) {
	m.Value, err = momentOf(text, time.Now())
	m.Given = err == nil
	return err
}

func momentOf(text string, now time.Time) (time.Time, error) {
	if ago, err := span.Parse(text); err == nil {
		return now.Add(-ago), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	for _, form := range []string{time.DateOnly, time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, form := range []string{"15:04", time.TimeOnly} {
		if t, err := time.Parse(form, text); err == nil {
			year, month, day := now.Date()
			return time.Date(year, month, day, t.Hour(), t.Minute(), t.Second(), 0, now.Location()), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time; write %s", text, MomentForms)
}

func (m *Moment) String() string {
	if m == nil || !m.Given {
		return ""
	}
	return m.Value.Format(time.RFC3339)
}
