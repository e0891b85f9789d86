package report

import (
	"bytes"
	_ "embed" // the page
	"fmt"
	"html/template"
	"net/url"
	"time"
)

//go:embed assets/index.html
var indexHTML string

// Index is the page over the pages of several groups.
type Index struct {
	Base   string
	Made   time.Time
	Groups []IndexGroup
}

// IndexGroup is a group in an Index. It has a File with its page, or a Trouble that prevented one.
type IndexGroup struct {
	Name, File, Trouble string
	Summary             Summary
}

type indexRow struct {
	Name, Link, Trouble                                 string
	Jobs, Done, Failed, Retry, Running, Pending, Missed string
	End                                                 string
}

// Page renders the index. It has no script.
func (x Index) Page() ([]byte, error) {
	parsed, err := template.New("index").Parse(indexHTML)
	if err != nil {
		return nil, fmt.Errorf("make the index: %w", err)
	}
	var rows []indexRow
	for _, g := range x.Groups {
		row := indexRow{Name: printable(g.Name, maxLine), Trouble: printable(g.Trouble, maxText)}
		if s := g.Summary; g.File != "" {
			row.Link = "./" + url.PathEscape(g.File)
			row.Jobs, row.Done, row.Failed, row.Retry = count(s.Jobs), count(s.Done), count(s.Failed), count(s.Retry)
			row.Running, row.Pending, row.Missed = count(s.Running+s.Claimed), count(s.Pending), count(s.Missed)
			if !s.End.IsZero() {
				row.End = s.End.Local().Format("2006-01-02 15:04:05 -0700")
			}
		}
		rows = append(rows, row)
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, struct {
		Policy, Base string
		Style        template.CSS
		Made         time.Time
		Rows         []indexRow
	}{
		"default-src 'none'; style-src " + hashOf(pageStyle) + "; base-uri 'none'; form-action 'none'",
		printable(x.Base, maxLine), template.CSS(pageStyle), x.Made, rows, //nolint:gosec // the style is ours
	})
	if err != nil {
		return nil, fmt.Errorf("make the index: %w", err)
	}
	return out.Bytes(), nil
}
