package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// sourceKind is a kind of lock source, by the scheme of its URLs.
type sourceKind struct {
	scheme string
	form   string // how its URLs look, for people
	groups bool   // a source has several groups: -g means something
	group  string // the group that is meant if none is named
	open   func(ctx context.Context, e *env, o common) (multilock.Source, error)
	// complete fills in what the URL leaves out, before anything is opened; nil if
	// nothing can be left out. In a program without the source it hands over to one
	// that has it.
	complete func(e *env, o *common) error
}

// sourceKinds are all sources that this program knows, one line each. Nothing
// else in it knows more than one of them.
func sourceKinds() []sourceKind {
	return []sourceKind{
		{fileScheme, "file:DIRECTORY", true, fslock.DefaultGroup, openFiles, nil},
		{"cloudshell", "cloudshell://USER@HOST/RESERVATION", true, "", openCloudshell, completeCloudshell},
		{"mongodb", "mongodb://HOST/DATABASE.COLLECTION", true, "", openMongo, completeMongo},
		{"mongodb+srv", "mongodb+srv://HOST/DATABASE.COLLECTION", true, "", openMongo, completeMongo},
		{"cook+file", "cook+file:///DIRECTORY?period=5m", true, fslock.DefaultGroup, openCookFiles, completeCookFiles},
		{"cook+mongodb", "cook+mongodb://HOST/DATABASE.COLLECTION?period=5m", false, "", openCookMongo, completeMongo},
		{"cook+mongodb+srv", "cook+mongodb+srv://HOST/DATABASE.COLLECTION?period=5m", false, "", openCookMongo, completeMongo},
	}
}

// openedSource is an opened lock source, and what the commands know of it beside.
type openedSource struct {
	locks multilock.Source // with as many more abilities as it has: see ability
	self  process.Identity // who this process is
	opt   common           // the options that selected it
}

// openSource opens the source that the options name.
func openSource(ctx context.Context, e *env, o common) (*openedSource, error) {
	kind, err := e.kindOf(o.scheme())
	if err != nil {
		return nil, err
	}
	locks, err := kind.open(ctx, e, o)
	if err != nil {
		return nil, o.withoutSecrets(e, err)
	}
	s := &openedSource{locks: locks, opt: o}
	if s.self, err = whoIs(locks); err != nil {
		return nil, s.close(err)
	}
	return s, nil
}

// kindOf finds a kind of source by its scheme.
func (e *env) kindOf(scheme string) (sourceKind, error) {
	var forms []string
	for _, kind := range e.kinds {
		if kind.scheme == scheme {
			return kind, nil
		}
		forms = append(forms, kind.form)
	}
	return sourceKind{}, fmt.Errorf("unknown kind of source; this multilock knows %s", strings.Join(forms, ", "))
}

// whoIs asks the source, which has found out, too, who this process is.
func whoIs(locks multilock.Source) (process.Identity, error) {
	if known, ok := locks.(interface{ Self() process.Identity }); ok {
		return known.Self(), nil
	}
	return process.Self()
}

// close joins what closing says to an error.
func (s *openedSource) close(err error) error {
	if closer, ok := s.locks.(io.Closer); ok {
		return errors.Join(err, closer.Close())
	}
	return err
}

// where names the source and its group for people.
func (s *openedSource) where() string {
	switch {
	case s.opt.isFiles():
		return filepath.Join(s.opt.base, s.opt.group)
	case s.opt.group == "":
		return s.opt.place()
	}
	return fmt.Sprintf("%s, group %s", s.opt.place(), s.opt.group)
}

// timed says whether a lock of this source is over at a fixed time, and not when it
// is released.
func (s *openedSource) timed() bool { return s.denies(source.TraitPromptRelease) }

// note writes into the history, if the source keeps one.
func (s *openedSource) note(ctx context.Context, event source.Event) error {
	if journal, ok := extra[source.Journal](s, source.TraitHistory); ok {
		return journal.Record(ctx, []source.Event{event})
	}
	return nil
}

// retract removes the manifest of the group, if the source keeps any.
func (s *openedSource) retract(ctx context.Context) error {
	if register, ok := extra[source.ManifestStore](s, source.TraitManifest); ok {
		return register.Retract(ctx)
	}
	return nil
}

// checkNames finds names that no lock of the source can have, as far as it can
// tell that beforehand.
func (s *openedSource) checkNames(names []string) error {
	checker, ok := s.locks.(source.NameChecker)
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
func userName(e *env) string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return e.Getenv("USER")
}
