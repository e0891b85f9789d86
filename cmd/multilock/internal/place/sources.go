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
	Open   func(context.Context, *console.Env, Place) (multilock.Source, error)
	// Complete fills in what the URL leaves out, before anything is opened; nil if
	// nothing can be left out. In a program without the source it hands over to one
	// that has it.
	Complete func(*console.Env, *Place) error
}

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
		{"cook+file", "cook+file:///DIRECTORY?period=5m", true, fslock.DefaultGroup, openCookFiles, completeCookFiles},
		{"cook+mongodb", "cook+mongodb://HOST/DATABASE.COLLECTION?period=5m", false, "", openCookMongo, completeMongo},
		{"cook+mongodb+srv", "cook+mongodb+srv://HOST/DATABASE.COLLECTION?period=5m", false, "", openCookMongo, completeMongo},
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
func (s *Source) Note(ctx context.Context, event source.Event) error {
	if journal, ok := source.Ability[source.Journal](s.Locks, source.TraitHistory); ok {
		return journal.Record(ctx, []source.Event{event})
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
	if !ok {
		return nil
	}
	for _, name := range names {
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
