//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// toldLease records the state of the history just before the lock is released.
type toldLease struct {
	fullLease
	p       *program
	release error // the result of the release; nil for the real one
	then    *[]string
	at      *time.Time // when it was released
}

func (l toldLease) Release(ctx context.Context) error {
	*l.then, *l.at = l.p.told(), time.Now()
	return errors.Join(l.fullLease.Release(ctx), l.release)
}

// history returns what a pattern matches in the files of the history.
func (p *program) history(pattern string) (found [][]string) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.base, ".multilock", "groups", ".locks", "history", "*"))
	require.NoError(p.t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(p.t, err)
		found = append(found, regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)...)
	}
	return found
}

// told returns the events.
func (p *program) told() (events []string) {
	p.t.Helper()
	for _, event := range p.history(`"event":"(\w+)"`) {
		events = append(events, event[1])
	}
	return events
}

// toldTime returns the time of an event.
func (p *program) toldTime(what string) time.Time {
	p.t.Helper()
	found := p.history(`"time":"([^"]+)","event":"` + what + `"`)
	require.Len(p.t, found, 1)
	at, err := time.Parse(time.RFC3339Nano, found[0][1])
	require.NoError(p.t, err)
	return at
}

// A short run writes its history with one write, before its lock is free: a barrier that finds the lock free
// must find how the run ended. The first event of a longer run is written while it runs. On a busy machine a
// run may not be short.
func TestHistoryOfARun(t *testing.T) {
	awaitBegin := `until cat "$0"/.multilock/groups/.locks/history/* 2>/dev/null | grep -q acquired; do sleep 0.01; done`
	for name, c := range map[string]struct {
		command []string
		options []string
		release error
		then    []string // at the release
		last    []string
	}{
		"short":    {[]string{"true"}, nil, nil, []string{"acquired", "released"}, []string{"acquired", "released"}},
		"failed":   {[]string{"false"}, nil, nil, []string{"acquired", "released"}, []string{"acquired", "released"}},
		"no such":  {[]string{"/nowhere/at/all"}, nil, nil, []string{"acquired", "released"}, []string{"acquired", "released"}},
		"lost":     {[]string{"true"}, nil, multilock.ErrLost, []string{"acquired", "released"}, []string{"acquired", "released", "lost"}},
		"recorded": {[]string{"true"}, []string{"--once"}, nil, []string{"acquired", "committed"}, []string{"acquired", "committed", "released"}},
		"long":     {[]string{"sh", "-c", awaitBegin, "BASE"}, nil, nil, []string{"acquired"}, []string{"acquired", "released"}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 100 {
				p, then, released := newProgram(t), []string{}, time.Time{}
				p.acquired = func(l fullLease) source.Lease { return toldLease{l, p, c.release, &then, &released} }
				command := append([]string{}, c.command...)
				if command[len(command)-1] == "BASE" {
					command[len(command)-1] = p.base
				}
				args := append([]string{"run", "-q", "--source", p.url("full"), "-n", "x"}, c.options...)
				p.run(append(append(args, "--"), command...)...)
				if len(then) == len(c.then) {
					require.Equal(t, c.then, then)
					require.Equal(t, c.last, p.told())
					require.False(t, p.toldTime("released").After(released), "the next one may acquire it from then on")
					return
				}
			}
			t.Fatal("no run was short")
		})
	}
}
