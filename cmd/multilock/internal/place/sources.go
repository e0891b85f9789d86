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
	Form   string // the form of its URLs, for people
	Groups bool   // whether the source has several groups, so that -g is accepted
	Group  string // the default group
	Open   openFunc
	// Complete fills in optional parts of the URL, before anything is opened; nil without such parts.
	// In a program that is built without the source it returns an error.
	Complete completeFunc
}

type (
	openFunc     func(context.Context, *console.Env, Place) (multilock.Source, error)
	completeFunc func(*console.Env, *Place) error
)

// Kinds are the kinds of sources in a program.
type Kinds []Kind

// Known returns all sources of this program, one per line. No other code depends on more than one of
// them.
func Known() Kinds {
	return Kinds{
		{fileScheme, "file:DIRECTORY", true, fslock.DefaultGroup, openFiles, nil},
		{"cloudshell", "cloudshell://USER@HOST/RESERVATION", true, "", openCloudshell, completeCloudshell},
		{"mongodb", "mongodb://HOST/DATABASE.COLLECTION", true, "", openMongo, completeMongo},
		{"mongodb+srv", "mongodb+srv://HOST/DATABASE.COLLECTION", true, "", openMongo, completeMongo},
		{"etcd", "etcd://HOST,HOST/PREFIX", true, "", openEtcd, completeEtcd},
		{"postgres", "postgres://USER@HOST/DATABASE", true, "", openPostgres, completePostgres},
		{"postgresql", "postgresql://USER@HOST/DATABASE", true, "", openPostgres, completePostgres},
		{"s3", "s3://BUCKET/PREFIX?region=REGION", true, "", openS3, completeS3},
		{"cook+file", "cook+file:///DIRECTORY?period=5m", true, fslock.DefaultGroup, openCookFiles, completeCookFiles},
		{"cook+mongodb", "cook+mongodb://HOST/DATABASE.COLLECTION?period=5m", false, "", openCookMongo, completeMongo},
		{"cook+mongodb+srv", "cook+mongodb+srv://HOST/DATABASE.COLLECTION?period=5m", false, "", openCookMongo, completeMongo},
		{"cook+etcd", "cook+etcd://HOST,HOST/PREFIX?period=5m", true, "", openCookOn(openEtcd), completeCookOn(completeEtcd)},
		{"cook+postgres", "cook+postgres://USER@HOST/DATABASE?period=5m", true, "", openCookOn(openPostgres), completeCookOn(completePostgres)},
		{"cook+postgresql", "cook+postgresql://USER@HOST/DATABASE?period=5m", true, "", openCookOn(openPostgres), completeCookOn(completePostgres)},
	}
}

// of returns the kind of a source by its scheme.
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

// Source is an opened lock source with the commands' data about it.
type Source struct {
	Locks multilock.Source // with optional interfaces: see Ability
	Self  process.Identity // identity of this process
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

// opened converts the result of a source's Open: a failure returns a nil interface, not a nil pointer in it.
func opened[S multilock.Source](s S, err error) (multilock.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// whoIs returns this process's identity, from the source if that has determined it.
func whoIs(locks multilock.Source) (process.Identity, error) {
	if known, ok := locks.(interface{ Self() process.Identity }); ok {
		return known.Self(), nil
	}
	return process.Self()
}

// Close closes the source and joins the error of that to err.
func (s *Source) Close(err error) error {
	if closer, ok := s.Locks.(io.Closer); ok {
		return errors.Join(err, closer.Close())
	}
	return err
}

// Where describes the source and its group for people.
func (s *Source) Where() string {
	switch {
	case s.Place.IsFiles():
		return filepath.Join(Absolute(s.Place.Base), s.Place.Group)
	case s.Place.Group == "":
		return s.Place.Public()
	}
	return fmt.Sprintf("%s, group %s", s.Place.Public(), s.Place.Group)
}

// Timed reports whether a lock of this source ends at a fixed time, and not when it is released.
func (s *Source) Timed() bool { return source.Denies(s.Locks, source.TraitPromptRelease) }

// Note appends to the history, if the source keeps one.
func (s *Source) Note(ctx context.Context, events ...source.Event) error {
	if journal, ok := source.Ability[source.Journal](s.Locks, source.TraitHistory); ok {
		return journal.Record(ctx, events)
	}
	return nil
}

// Retract removes the group's manifest, if the source keeps manifests.
func (s *Source) Retract(ctx context.Context) error {
	if register, ok := source.Ability[source.ManifestStore](s.Locks, source.TraitManifest); ok {
		return register.Retract(ctx)
	}
	return nil
}

// CheckNames rejects names that are not valid for locks of the source, as far as it can check that in
// advance.
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

// userName returns the user's name, for people.
func userName(e *console.Env) string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return e.Getenv("USER")
}

// Ability returns an interface of the source that a command requires. Commands call it before they
// do anything.
func Ability[T any](s *Source, command string, trait source.Trait) (T, error) {
	able, ok := source.Ability[T](s.Locks, trait)
	if !ok {
		return able, s.Lacking(command, trait)
	}
	return able, nil
}

// Require checks capabilities without an interface of their own; unknown counts as supported.
func (s *Source) Require(command string, traits ...source.Trait) error {
	for _, trait := range traits {
		if source.Denies(s.Locks, trait) {
			return s.Lacking(command, trait)
		}
	}
	return nil
}

// Lacking returns an error for a missing capability, with the source's reason if it has one.
func (s *Source) Lacking(command string, trait source.Trait) error {
	why := ""
	if guarantee, ok := source.GuaranteeOf(s.Locks, trait); ok && !guarantee.Kept {
		why = " (" + guarantee.Why + ")"
	}
	return &console.UsageError{Command: command, Err: fmt.Errorf("this source %s%s, and that is needed here; see what it can do: %s",
		lack(trait), why, s.Place.Command("doctor"))}
}

// lack describes a source without a capability.
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
		return "cannot list whether anything in it is held"
	case source.TraitFenceNumbers:
		return "has no fencing numbers"
	case source.TraitPromptRelease:
		return "frees no lock before its time is over"
	case source.TraitQueue:
		return "has no queue"
	case source.TraitNamedHolder:
		return "does not report which process holds a lock"
	case source.TraitBreakByEvidence:
		return "does not report whether a holder is dead"
	case source.TraitBreakByForce:
		return "cannot break a lock"
	}
	return fmt.Sprintf("does not guarantee %q", trait)
}

// LastingError means that a lock was not acquired and cannot be broken.
type LastingError struct{ err error }

func (l *LastingError) Error() string { return l.err.Error() }
func (l *LastingError) Unwrap() error { return l.err }

// IfLasting wraps an error about a held lock in a LastingError if the source cannot break locks.
func (s *Source) IfLasting(err error) error {
	if err != nil && source.Denies(s.Locks, source.TraitBreakByForce) {
		return &LastingError{err}
	}
	return err
}
