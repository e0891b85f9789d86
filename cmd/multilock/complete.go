package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock/source"
)

// completeCommand is called by completion scripts of shells (scripts/package/files/completions) with the
// words of a command line up to the cursor. It prints one candidate per line, or one of the constants below.
// It changes nothing, does not wait long, and reports no errors, which would disturb the user's typing.
//
// The library's own completion does not know values of options, such as names of locks.
const completeCommand = "__complete"

const (
	filesAsWell  = ":files"   // complete file names, too
	commandsHere = ":command" // a job's command line starts here
)

// completionPatience is the maximum wait for a file server after the user pressed a key.
const completionPatience = 2 * time.Second

// complete prints the candidates for the last word.
func complete(ctx context.Context, e *command.Env, words []string) {
	last := ""
	if len(words) > 0 {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	app := newApp(e)
	line, _ := arrange(app, e.Line, append([]string{options.Program}, words...)) // it is incomplete
	for _, candidate := range (&typed{line, app}).candidates(ctx, e, last) {
		_ = e.Print("%s\n", candidate)
	}
	e.Flush()
}

// typed is an incomplete command line.
type typed struct {
	*commandLine
	app *cli.App
}

// job reports whether the next word belongs to a job, or to an unknown command.
func (t *typed) job() bool {
	return t.command == nil && t.called != "" || t.level == "run" && t.isPlain()
}

// isPlain reports whether options can no longer follow.
func (t *typed) isPlain() bool { return t.command != nil && !t.over() }

func (t *typed) candidates(ctx context.Context, e *command.Env, last string) []string {
	option, value, assigned := strings.Cut(last, "=")
	switch {
	case t.job():
		return []string{commandsHere}
	case t.open != nil:
		return matching(t.values(ctx, e, t.open), last, "")
	case assigned && strings.HasPrefix(last, "--") && !t.isPlain():
		return matching(t.values(ctx, e, options.Find(t.level, strings.TrimPrefix(option, "--"))), value, option+"=")
	case strings.HasPrefix(last, "-") && !t.isPlain():
		return matching(t.options(), last, "")
	case t.command == nil:
		return matching(command.Names(t.app), last, "")
	default:
		return matching(t.arguments(ctx, e), last, "")
	}
}

// matching returns the candidates that begin with the typed text. It always includes the special words for
// the shell.
func matching(candidates []string, begin, before string) (all []string) {
	for _, each := range candidates {
		switch {
		case strings.HasPrefix(each, ":"):
			all = append(all, each)
		case strings.HasPrefix(each, begin):
			all = append(all, before+each)
		}
	}
	return all
}

func (t *typed) options() (names []string) {
	for _, name := range options.Names(options.Of(t.level)) {
		names = append(names, "--"+name)
	}
	slices.Sort(names)
	return append(names, "--help")
}

func (t *typed) values(ctx context.Context, e *command.Env, o *options.Option) []string {
	switch {
	case o != nil && o.Word() == options.Name:
		return t.names(ctx, e)
	case o != nil && o.Words != "":
		return strings.Fields(o.Words)
	}
	return []string{filesAsWell}
}

func (t *typed) arguments(ctx context.Context, e *command.Env) []string {
	switch t.command.Name {
	case "run":
		return []string{commandsHere}
	case "batch":
		return []string{filesAsWell}
	default:
		return t.names(ctx, e)
	}
}

// names returns the names of the group's held locks, and of jobs with results.
func (t *typed) names(ctx context.Context, e *command.Env) []string {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	found := make(chan []string, 1) // a call to an unreachable file server may ignore ctx
	go func() { found <- t.ask(ctx, e) }()
	select {
	case names := <-found:
		return names
	case <-ctx.Done():
		return nil
	}
}

func (t *typed) ask(ctx context.Context, e *command.Env) []string {
	where, err := e.Kinds.Find(t.asked(), e.Env)
	if err != nil {
		return nil
	}
	src, err := e.Kinds.Open(ctx, e.Env, where)
	if err != nil {
		return nil
	}
	defer func() { _ = src.Close(nil) }() // the process ends here
	names, _ := src.Locks.Names(ctx)      // after an error, it completes the names found so far
	if ledger, ok := source.Ability[source.Ledger](src.Locks, source.TraitResults); ok {
		done, _ := ledger.Results(ctx)
		names = append(names, done...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { // internal or ambiguous
		return strings.ContainsAny(name, "#\n") || strings.HasPrefix(name, "-") || strings.HasPrefix(name, ":")
	})
	slices.Sort(names)
	return slices.Compact(names)
}

func (t *typed) asked() place.Asked {
	given := func(option string) *string {
		if value := t.said.Typed[option]; value != "" {
			return &value
		}
		return nil
	}
	return place.Asked{Dir: given("dir"), Source: given("source"), Group: given("group"), Trust: given("trust")}
}
