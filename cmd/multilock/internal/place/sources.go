package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Kind is a kind of lock source, by the scheme of its URLs.
type Kind struct {
	Scheme string
	Form   string // how its URLs look, for people
	Groups bool   // a source has several groups: -g means something
	Group  string // the group that is meant if none is named
	Open   openFunc
	// Complete fills in what the URL leaves out, before anything is opened; nil if
	// nothing can be left out. In a program without the source it says so.
	Complete completeFunc
}

type (
	openFunc     func(context.Context, *console.Env, Place) (multilock.Source, error)
	completeFunc func(*console.Env, *Place) error
)

// Kinds are those that a program knows.
type Kinds []Kind

// Known are all sources that this program has, one line each. Nothing else in it knows
// more than one of them.
func Known() Kinds {
	return Kinds{
		{fileScheme, "file:DIRECTORY", true, fslock.DefaultGroup, openFiles, nil},
		{"cloudshell", "cloudshell://USER@HOST/RESERVATION", true, "", openCloudshell, completeCloudshell},
		{"mongodb", "mongodb://HOST/DATABASE.COLLECTION", true, "", openMongo, completeMongo},
		{"mongodb+srv", "mongodb+srv://HOST/DATABASE.COLLECTION", true, "", openMongo, completeMongo},
		{"etcd", "etcd://HOST,HOST/PREFIX", true, "", openEtcd, completeEtcd},
		{"postgres", "postgres://USER@HOST/DATABASE", true, "", openPostgres, completePostgres},
		{"postgresql", "postgresql://USER@HOST/DATABASE", true, "", openPostgres, completePostgres},
		{"cook+file", "cook+file:///DIRECTORY?period=5m", true, fslock.DefaultGroup, openCookFiles, completeCookFiles},
		{"cook+mongodb", "cook+mongodb://HOST/DATABASE.COLLECTION?period=5m", false, "", openCookMongo, completeMongo},
		{"cook+mongodb+srv", "cook+mongodb+srv://HOST/DATABASE.COLLECTION?period=5m", false, "", openCookMongo, completeMongo},
		{"cook+etcd", "cook+etcd://HOST,HOST/PREFIX?period=5m", true, "", openCookOn(openEtcd), completeCookOn(completeEtcd)},
		{"cook+postgres", "cook+postgres://USER@HOST/DATABASE?period=5m", true, "", openCookOn(openPostgres), completeCookOn(completePostgres)},
		{"cook+postgresql", "cook+postgresql://USER@HOST/DATABASE?period=5m", true, "", openCookOn(openPostgres), completeCookOn(completePostgres)},
	}
}

// of finds a kind of source by its scheme.
func (k Kinds) of(scheme string) (Kind, error) {
	var forms []string
	for _, kind := range k {
		if kind.Scheme == scheme {
			return kind, nil
		}
		forms = append(forms, kind.Form)
	}
	return Kind{}, fmt.Errorf("unknown kind of source; this multilock knows %s", strings.Join(forms, ", "))
}

// Source is an opened lock source, and what the commands know of it beside.
type Source struct {
	Locks multilock.Source // with as many more abilities as it has: see Ability
	Self  process.Identity // who this process is
	Place Place
}

// Open opens the source of a place.
func (k Kinds) Open(ctx context.Context, e *console.Env, p Place) (*Source, error) {
	kind, err := k.of(p.scheme())
	if err != nil {
		return nil, err
	}
	locks, err := kind.Open(ctx, e, p)
	if err != nil {
		return nil, p.withoutSecrets(e, err)
	}
	s := &Source{Locks: locks, Place: p}
	if files, ok := locks.(*fslock.Source); ok && p.IsFiles() {
		s.Place.Base = files.Base()
	}
	if s.Self, err = whoIs(locks); err != nil {
		return nil, s.Close(err)
	}
	return s, nil
}

// opened is what a source's own Open gave: nil, and no pointer that is nil, if it failed.
func opened[S multilock.Source](s S, err error) (multilock.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// whoIs asks the source, which has found out, too, who this process is.
func whoIs(locks multilock.Source) (process.Identity, error) {
	if known, ok := locks.(interface{ Self() process.Identity }); ok {
		return known.Self(), nil
	}
	return process.Self()
}

// Close joins what closing says to an error.
func (s *Source) Close(err error) error {
	if closer, ok := s.Locks.(io.Closer); ok {
		return errors.Join(err, closer.Close())
	}
	return err
}

// Where names the source and its group for people.
func (s *Source) Where() string {
	switch {
	case s.Place.IsFiles():
		return filepath.Join(s.Place.Base, s.Place.Group)
	case s.Place.Group == "":
		return s.Place.Public()
	}
	return fmt.Sprintf("%s, group %s", s.Place.Public(), s.Place.Group)
}

// Timed says whether a lock of this source is over at a fixed time, and not when it
// is released.
func (s *Source) Timed() bool { return source.Denies(s.Locks, source.TraitPromptRelease) }

// Note writes into the history, if the source keeps one.
func (s *Source) Note(ctx context.Context, events ...source.Event) error {
	if journal, ok := source.Ability[source.Journal](s.Locks, source.TraitHistory); ok {
		return journal.Record(ctx, events)
	}
	return nil
}

// Retract removes the manifest of the group, if the source keeps any.
func (s *Source) Retract(ctx context.Context) error {
	if register, ok := source.Ability[source.ManifestStore](s.Locks, source.TraitManifest); ok {
		return register.Retract(ctx)
	}
	return nil
}

// CheckNames finds names that no lock of the source can have, as far as it can
// tell that beforehand.
func (s *Source) CheckNames(names []string) error {
	checker, ok := s.Locks.(source.NameChecker)
	for _, name := range names {
		if err := source.CheckEnds("lock name", name); err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := checker.CheckName(name); err != nil {
			return err
		}
	}
	return nil
}

// userName names the user for people.
func userName(e *console.Env) string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return e.Getenv("USER")
}

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
	case source.TraitQueue:
		return "has no queue"
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
