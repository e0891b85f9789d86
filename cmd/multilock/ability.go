package main

import (
	"fmt"

	"github.com/multilock/go/multilock"
)

// ability is the source as one that can do what a command cannot work without. It
// is asked for before the command does anything.
func ability[T any](s *source, command string, trait multilock.Trait) (T, error) {
	able, ok := extra[T](s, trait)
	if !ok {
		return able, s.lacking(command, trait)
	}
	return able, nil
}

// extra is the source as one that can do what a command is able to do without. One
// that has the methods may still deny the trait: for this place, or this server.
func extra[T any](s *source, trait multilock.Trait) (able T, ok bool) {
	able, ok = s.locks.(T)
	return able, ok && !s.denies(trait)
}

// require is for what no method tells. A source that says nothing is tried.
func (s *source) require(command string, trait multilock.Trait) error {
	if s.denies(trait) {
		return s.lacking(command, trait)
	}
	return nil
}

func (s *source) denies(trait multilock.Trait) bool {
	promise, told := multilock.PromiseOf(s.locks, trait)
	return told && !promise.Kept
}

// lacking says in words what a source cannot do, and why if it tells that.
func (s *source) lacking(command string, trait multilock.Trait) error {
	why := ""
	if promise, ok := multilock.PromiseOf(s.locks, trait); ok && !promise.Kept {
		why = " (" + promise.Why + ")"
	}
	return &usageProblem{command: command, err: fmt.Errorf("this source %s%s, and that is needed here; what it can do tells: %s",
		lack(trait), why, s.opt.command("doctor"))}
}

// lack is what a source is like that does not have a trait.
func lack(trait multilock.Trait) string {
	switch trait {
	case multilock.Results:
		return "keeps no results of jobs"
	case multilock.Manifest:
		return "keeps no list of jobs about which hosts could agree"
	case multilock.History:
		return "keeps no history"
	case multilock.OneClock:
		return "has no clock that all hosts read"
	case multilock.CheapBarrier:
		return "cannot tell whether anything in it is held"
	case multilock.FenceNumbers:
		return "has no fencing numbers"
	case multilock.PromptRelease:
		return "frees no lock before its time is over"
	case multilock.RunHistory:
		return "does not keep how each run ended"
	case multilock.NamedHolder:
		return "does not tell who holds a lock"
	case multilock.BreakByEvidence:
		return "does not tell whether a holder is dead"
	case multilock.BreakByForce:
		return "does not let anybody break a lock"
	}
	return fmt.Sprintf("does not promise %q", trait)
}
