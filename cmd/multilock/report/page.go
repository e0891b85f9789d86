package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"fmt"
	"html/template"
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// The script is split into several files only for readability.
var (
	//go:embed assets/page.html
	pageHTML string
	//go:embed assets/page.css
	pageStyle string
	//go:embed assets/model.js
	modelScript string
	//go:embed assets/chart.js
	chartScript string
	//go:embed assets/overview.js
	overviewScript string
	//go:embed assets/view.js
	viewScript string
	//go:embed assets/table.js
	tableScript string
	//go:embed assets/main.js
	mainScript string
)

type page struct {
	Policy      string
	Style       template.CSS
	Script      template.JS
	Data        *pageData
	Title       string
	Base, Group string
	Index       string
	Made        time.Time
	Since       *time.Time
	Missing     []string
	Summary     Summary
	Tiles       []tile
	Curve       *curve
	Histogram   *histogram
	Calendars   []calendar
	More        struct{ Calendars, Troubles int } // that are left out
	Failures    []groupRows
	Hosts       []hostRow
	Clocks      []clockRow
}

// Page renders the timeline as one self-contained HTML page. Names and commands are untrusted: the template
// and the script escape them, and the content security policy allows only the page's own script.
func Page(t *Timeline) ([]byte, error) {
	parsed, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	script := modelScript + chartScript + overviewScript + viewScript + tableScript + mainScript
	p := page{
		Policy: "default-src 'none'; style-src " + hashOf(pageStyle) + "; script-src " + hashOf(script) + "; base-uri 'none'; form-action 'none'",
		Style:  template.CSS(pageStyle), Script: template.JS(script), //nolint:gosec // both are ours
		Title: printable(t.Title, maxLine), Base: printable(t.Base, maxLine), Group: printable(t.Group, maxLine), Made: t.Made, Since: timeOrNil(t.Since), Summary: t.Summary, Index: t.Index,
		Tiles: tilesOf(t), Data: dataOf(t),
	}
	for _, what := range t.Missing {
		p.Missing = append(p.Missing, printable(what, maxText))
	}
	p.Curve, p.Histogram = curveOf(t), histogramOf(t.timing)
	p.Calendars, p.More.Calendars = calendarsOf(t)
	p.Failures, p.More.Troubles = groupsOf(t)
	for i, label := range hostLabels(t.Hosts) {
		p.Hosts = append(p.Hosts, hostRowOf(label, t.Hosts[i]))
	}
	for _, gap := range t.Clocks {
		p.Clocks = append(p.Clocks, clockRow{printable(gap.Ahead, maxLine), printable(gap.Behind, maxLine), printable(gap.Name, maxLine), durationText(gap.AtLeast)})
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	return out.Bytes(), nil
}

// hashOf returns the hash of a text for a content security policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// durationText formats seconds as a duration.
func durationText(seconds float64) string {
	return console.Short(time.Duration(seconds * float64(time.Second)))
}

// tile is one number of the summary.
type tile struct {
	Label, Value, Note string
	State              State
}

func tilesOf(t *Timeline) []tile {
	s := &t.Summary
	tiles := []tile{{Label: "Jobs", Value: count(s.Jobs)}, {Label: "Done", Value: count(s.Done), State: Done}, {Label: "Failed", Value: count(s.Failed), State: Failed}}
	for _, one := range []struct {
		n           int
		label, note string
		state       State
	}{
		{s.Incomplete, "Output incomplete", "", Failed}, {s.Retry, "To be retried", "", Failed}, {s.Running, "Running", "", Running},
		{s.Claimed, "Claimed", "by a live host", Running}, {s.Pending, "Pending", "", ""}, {s.Other, "Others", "see the list", ""},
		{s.TakenOver, "Locks cleared", "broken by others", Dead}, {s.Lost, "Locks lost", "", Lost}, {s.Refused, "Not acquired", "held by others", ""},
		{s.Missed, "Ticks missed", "without a run", Failed},
	} {
		if one.n > 0 {
			tiles = append(tiles, tile{one.label, count(one.n), one.note, one.state})
		}
	}
	if s.Left > 0 {
		tiles = append(tiles, tile{Label: "Time left", Value: durationText(s.Left), Note: "at this rate"})
	}
	tiles = append(tiles, tile{Label: "Hosts", Value: count(len(t.Hosts))}, tile{Label: "Start to end", Value: durationText(s.Elapsed)})
	if s.Elapsed > 0 {
		value, per := rate(s.Rate)
		tiles = append(tiles, tile{Label: "Throughput", Value: value, Note: per}, tile{Label: "In parallel", Value: strconv.FormatFloat(s.Busy/s.Elapsed, 'f', 1, 64), Note: "on average"})
	}
	return tiles
}

// rate chooses a unit that keeps the throughput readable.
func rate(perSecond float64) (value, unit string) {
	for _, one := range []struct {
		seconds float64
		words   string
	}{{1, "jobs per second"}, {60, "jobs per minute"}, {3600, "jobs per hour"}} {
		if n := perSecond * one.seconds; n >= 1 || one.seconds == 3600 {
			return strconv.FormatFloat(n, 'f', 1, 64), one.words
		}
	}
	return "", ""
}

type hostRow struct {
	Label                    string
	Percent                  int
	Rows                     int
	Runs, Done, Failed, Busy string
	Start, End               *time.Time
}

func hostRowOf(label string, h Host) hostRow {
	return hostRow{
		Label: label, Percent: int(h.Utilisation*100 + 0.5), Rows: h.Rows, Runs: count(h.Runs), Done: count(h.Done), Failed: count(h.Failed), Busy: durationText(h.Busy),
		Start: timeOrNil(h.Start), End: timeOrNil(h.End),
	}
}

type clockRow struct{ Ahead, Behind, Name, AtLeast string }
