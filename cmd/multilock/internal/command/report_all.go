package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/report"
	"github.com/multilock/go/multilock/source"
)

// runAll writes a page for each group, and an index of them, into a directory.
func (o *reportOptions) runAll(ctx context.Context, e *Env, src *place.Source) error {
	if _, ok := src.Locks.(source.GroupLister); !ok {
		return console.Usagef("report", "--all is for a source that can list its groups, and this one cannot")
	}
	groups, err := groupsOf(ctx, src)
	if err != nil {
		return err
	}
	dir, err := outfile.MakeDir(o.output)
	if err != nil {
		return fmt.Errorf("write the reports: %w", err)
	}
	defer dir.Close() //nolint:errcheck // a directory
	index := report.Index{Base: o.Public(), Made: o.now}
	for _, g := range groups {
		at := src.Place
		at.Group = g.Name
		one, err := o.writeGroup(ctx, e, at, dir.Path())
		if err != nil { // an unreadable group must not hide the others
			one.Trouble = console.Line(err.Error())
			e.Say("warning: group %s: %s", groupLabel(g.Name), one.Trouble)
		}
		index.Groups = append(index.Groups, one)
	}
	page, err := index.Page()
	if err == nil {
		err = outfile.Replace(filepath.Join(dir.Path(), "index.html"), page)
	}
	if err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	if o.Quiet {
		return nil
	}
	return e.Print("%s: %s\n", console.Label(filepath.Join(o.output, "index.html")), plural(len(groups), "group"))
}

// writeGroup writes the page of one group.
func (o *reportOptions) writeGroup(ctx context.Context, e *Env, at place.Place, dir string) (report.IndexGroup, error) {
	one := report.IndexGroup{Name: groupLabel(at.Group)}
	src, err := e.Kinds.Open(ctx, e.Env, at)
	if err != nil {
		return one, err
	}
	t, err := o.timeline(ctx, e, src)
	if err = src.Close(err); err != nil {
		return one, err
	}
	t.Index = "index.html"
	page, err := report.Page(t)
	if err != nil {
		return one, err
	}
	// The prefix distinguishes it from the index, for any group name.
	file := "group-" + fileName(at.Group) + ".html"
	if err := outfile.Replace(filepath.Join(dir, file), page); err != nil {
		return one, errors.Join(errors.New("write the report"), err)
	}
	one.File, one.Summary = file, t.Summary
	return one, nil
}
