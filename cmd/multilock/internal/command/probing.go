package command

import (
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/probe"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// probing is the option of commands that may find locks of dead holders.
type probing struct{ Probe string }

// prober returns the probe for holders without heartbeats, nil without --probe. It calls say with the reason
// if an answer is inconclusive.
func (p *probing) prober(e *Env, src *place.Source, command string, say func(string, ...any)) (source.Probe, error) {
	if p.Probe == "" {
		return nil, nil
	}
	if _, ok := src.Locks.(*fslock.Source); !ok {
		return nil, console.Usagef(command, "--probe: only locks in a directory ask about a holder without heartbeats")
	}
	return probe.New(p.Probe, place.JobEnviron(e.Environ()), src.Self, say).Ask, nil
}
