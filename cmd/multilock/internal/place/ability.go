package place

import (
	"fmt"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/source"
)

// Ability is the source as one that can do what a command cannot work without. It
// is asked for before the command does anything.
func Ability[T any](s *Source, command string, trait source.Trait) (T, error) {
	able, ok := source.Ability[T](s.Locks, trait)
	if !ok {
		return able, s.Lacking(command, trait)
	}
	return able, nil
}

// Require is for what no method tells. A source that says nothing is tried.
func (s *Source) Require(command string, traits ...source.Trait) error {
	for _, trait := range traits {
		if source.Denies(s.Locks, trait) {
			return s.Lacking(command, trait)
		}
	}
	return nil
}

// Lacking says in words what a source cannot do, and why if it tells that.
func (s *Source) Lacking(command string, trait source.Trait) error {
	why := ""
	if promise, ok := source.PromiseOf(s.Locks, trait); ok && !promise.Kept {
		why = " (" + promise.Why + ")"
	}
	return &console.UsageError{Command: command, Err: fmt.Errorf("this source %s%s, and that is needed here; what it can do tells: %s",
		lack(trait), why, s.Place.Command("doctor"))}
}

// lack is what a source is like that does not have a trait.
func lack(trait source.Trait) string {
	switch trait {
	case source.TraitResults:
		return "keeps no results of jobs"
	case source.TraitManifest:
		return "keeps no list of jobs about which hosts could agree"
	case source.TraitHistory:
		return "keeps no history"
	case source.TraitOneClock:
		return "has no clock that all hosts read"
	case source.TraitCheapBarrier:
		return "cannot tell whether anything in it is held"
	case source.TraitFenceNumbers:
		return "has no fencing numbers"
	case source.TraitPromptRelease:
		return "frees no lock before its time is over"
	case source.TraitRunHistory:
		return "does not keep how each run ended"
	case source.TraitNamedHolder:
		return "does not tell who holds a lock"
	case source.TraitBreakByEvidence:
		return "does not tell whether a holder is dead"
	case source.TraitBreakByForce:
		return "does not let anybody break a lock"
	}
	return fmt.Sprintf("does not promise %q", trait)
}

// LastingError is the refusal of a lock that nobody can break.
type LastingError struct{ err error }

func (l *LastingError) Error() string { return l.err.Error() }
func (l *LastingError) Unwrap() error { return l.err }

// IfLasting makes one of a refusal, where that is so.
func (s *Source) IfLasting(err error) error {
	if err != nil && source.Denies(s.Locks, source.TraitBreakByForce) {
		return &LastingError{err}
	}
	return err
}
