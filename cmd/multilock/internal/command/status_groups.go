package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock/source"
)

// groupsOf returns all groups of the place in natural order, none if the source cannot list them.
func groupsOf(ctx context.Context, src *place.Source) ([]source.GroupSummary, error) {
	lister, ok := src.Locks.(source.GroupLister)
	if !ok {
		return nil, nil
	}
	groups, err := lister.Groups(ctx)
	slices.SortStableFunc(groups, func(a, b source.GroupSummary) int { return show.Natural(a.Name, b.Name) })
	return groups, err
}

// lookAtGroups lists the other groups. Errors only cause warnings, because the groups are extra information.
func (r *statusReport) lookAtGroups(ctx context.Context, src *place.Source) {
	groups, err := groupsOf(ctx, src)
	if err != nil {
		r.Unreadable = append(r.Unreadable, "the other groups: "+console.Line(err.Error()))
		return
	}
	r.Groups = append([]source.GroupSummary{}, groups...)
}

// others names the other groups, those with held locks first.
func (r *statusReport) others() string {
	var held, idle []string
	for _, g := range r.Groups {
		switch {
		case g.Name == r.Group:
		case g.Held > 0:
			held = append(held, fmt.Sprintf("%s (%d held)", groupLabel(g.Name), g.Held))
		default:
			idle = append(idle, groupLabel(g.Name))
		}
	}
	if len(held)+len(idle) == 0 {
		return ""
	}
	named := slices.Concat(held, idle)
	text := "other groups: " + strings.Join(named[:min(len(named), show.Most)], ", ") + show.Some(len(named)-show.Most, "more")
	return text + "; to see them all: " + r.place.CommandForAll("status", "--all")
}

func groupLabel(name string) string {
	if name == "" {
		return "(the default one)"
	}
	return console.Label(name)
}

// allReport is the output of "status --all --json".
type allReport struct {
	Base   string         `json:"base"`
	Groups []statusReport `json:"groups"`
}

// lookAtAll inspects each group of the place.
func (o *statusOptions) lookAtAll(ctx context.Context, e *Env, src *place.Source) (all allReport, err error) {
	all = allReport{Base: src.Place.Public(), Groups: []statusReport{}}
	groups, err := groupsOf(ctx, src)
	if err != nil {
		return all, err
	}
	if !slices.ContainsFunc(groups, func(g source.GroupSummary) bool { return g.Name == src.Place.Group }) {
		groups = append(groups, source.GroupSummary{Name: src.Place.Group})
	}
	for _, g := range groups {
		at := src.Place
		at.Group = g.Name
		report, err := o.lookAtGroup(ctx, e, at)
		if err != nil { // an unreadable group must not hide the others
			report = statusReport{Base: all.Base, Group: g.Name, Locks: []show.Lock{}, Unreadable: []string{console.Line(err.Error())}}
		}
		all.Groups = append(all.Groups, report)
	}
	return all, nil
}

func (o *statusOptions) lookAtGroup(ctx context.Context, e *Env, at place.Place) (statusReport, error) {
	src, err := e.Kinds.Open(ctx, e.Env, at)
	if err != nil {
		return statusReport{}, err
	}
	report, err := o.lookAtLocks(ctx, src)
	return report, src.Close(err)
}

// screen has one table for all groups, and the remarks of each.
func (a allReport) screen(o *statusOptions) screen {
	var table show.Table
	var remarks []string
	for _, r := range a.Groups {
		for i, row := range r.rows() {
			if i == 0 && len(table) == 0 {
				table.Row(slices.Concat([]any{"GROUP"}, row)...)
			} else if i > 0 {
				table.Row(slices.Concat([]any{groupLabel(r.Group)}, row)...)
			}
		}
		for _, line := range r.remarks(o) {
			remarks = append(remarks, groupLabel(r.Group)+": "+line)
		}
	}
	s := screen{table: table, remarks: remarks}
	if len(table) < 2 { //nolint:mnd // the heading alone
		s.table, s.empty = nil, "nothing is held in "+a.Base
	}
	return s
}

func (a allReport) reports() []statusReport { return a.Groups }

func (a allReport) missing() (texts []string) {
	for _, r := range a.Groups {
		for _, text := range r.Unreadable {
			texts = append(texts, "group "+groupLabel(r.Group)+": "+text)
		}
	}
	return texts
}

func (a allReport) exitStatus(*statusOptions) (err error) {
	for _, r := range a.Groups {
		err = errors.Join(err, r.unsure())
	}
	return err
}

// screen is a report as text.
type screen struct {
	empty   string     // instead of a table
	table   show.Table // its first row is the heading
	remarks []string
	pace    string // of a list; the screen of --watch has it above the table
	results show.Table
}

func (s screen) print(e *Env, quiet bool) error {
	var err error
	switch {
	case len(s.table) > 0:
		err = s.table.Print(e.Env)
	case s.empty != "" && !quiet:
		err = e.Print("%s\n", s.empty)
	}
	if s.pace != "" {
		s.remarks = append(s.remarks, s.pace)
	}
	if len(s.remarks) > 0 && !quiet {
		err = errors.Join(err, e.Print("%s\n", strings.Join(s.remarks, "\n")))
	}
	if len(s.results) > 1 {
		err = errors.Join(err, e.Print("\n"), s.results.Print(e.Env))
	}
	return err
}
