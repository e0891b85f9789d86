package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/source"

	"github.com/multilock/go/internal/span"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/process"
)

// cooking is a source of cooking locks with the storage of its registers.
type cooking struct {
	*cooklock.Source
	io.Closer
}

// newCooking makes the source with the URL's parameters. It closes the storage of the registers together
// with the source, or at once after an error.
func newCooking(p cookParameters, opt cooklock.Options, under io.Closer) (*cooking, error) {
	opt.Period, opt.Notes = p.period, cooklock.DefaultNotes()
	locks, err := cooklock.New(opt)
	if err != nil {
		return nil, errors.Join(err, under.Close())
	}
	return &cooking{locks, under}, nil
}

// cookParameters are the parameters of a URL, with those of the lock itself separated.
type cookParameters struct {
	period time.Duration
	others []string // unchanged
}

func readCooking(a Address) (p cookParameters, err error) {
	for _, parameter := range a.parameters() {
		name, text, _ := strings.Cut(parameter, "=")
		switch {
		case name == "period" && p.period != 0:
			return p, errors.New("the parameter period is given twice")
		case name == "period":
			if p.period, err = readPeriod(text); err != nil {
				return p, fmt.Errorf("the parameter period: %w", err)
			}
		default:
			p.others = append(p.others, parameter)
		}
	}
	if p.period == 0 {
		return p, errors.New("the period is missing; write period=5m, the same on all hosts: it is how long the lock lasts")
	}
	return p, nil
}

func readPeriod(text string) (time.Duration, error) {
	text, err := url.QueryUnescape(text)
	if err != nil {
		return 0, errors.New("cannot be read")
	}
	period, err := span.Parse(text)
	if err == nil && period == 0 {
		err = errors.New("must not be 0")
	}
	return period, err
}

// cookingOn are cooking locks with registers in another lock source that can be examined.
type cookingOn struct {
	*cooking
	under source.Examiner
}

// Examine implements source.Examiner.
func (c *cookingOn) Examine(ctx context.Context) []source.Finding { return c.under.Examine(ctx) }

// kitchen is a source that can store registers for cooking locks.
type kitchen interface {
	source.Examiner
	source.Registrar
	io.Closer
	Self() process.Identity
}

// openCookOn opens cooking locks whose registers are in a source opened by open.
func openCookOn(open openFunc) openFunc {
	return func(ctx context.Context, e *console.Env, p Place) (source.Source, error) {
		cook, err := readCooking(p.URL)
		if err != nil {
			return nil, err
		}
		place := p.URL.public() + "\x00" + p.Group
		p.URL = p.URL.uncooked(cook)
		locks, err := open(ctx, e, p)
		if err != nil {
			return nil, err
		}
		on := locks.(kitchen)
		made, err := newCooking(cook, cooklock.Options{Open: on.Register, Names: on.Registers, Place: place, Self: on.Self()}, on)
		if err != nil {
			return nil, err
		}
		return &cookingOn{made, on}, nil
	}
}

// completeCookOn completes such URLs by means of the source's complete.
func completeCookOn(complete completeFunc) completeFunc {
	return func(e *console.Env, p *Place) error {
		cook, _ := readCooking(p.URL) // opening the source reports the error
		under := *p
		under.URL = p.URL.uncooked(cook)
		err := complete(e, &under)
		p.Exposed, p.InClear = under.Exposed, under.InClear
		return err
	}
}

// uncooked returns the URL of the source that stores the registers.
func (a Address) uncooked(cook cookParameters) Address {
	a.scheme = strings.TrimPrefix(a.scheme, "cook+")
	a.query = strings.Join(cook.others, "&")
	return a
}

// cookSuffix separates the group with the registers of cooking locks from the group of other locks: a
// lock and a cooking lock with the same name are independent.
const cookSuffix = ".cook"

func openCookFiles(_ context.Context, e *console.Env, p Place) (source.Source, error) {
	base, err := p.cookDirectory()
	if err != nil {
		return nil, err
	}
	cook, err := readCooking(p.URL)
	if err != nil {
		return nil, err
	}
	if len(cook.others) > 0 {
		name, _, _ := strings.Cut(cook.others[0], "=")
		return nil, fmt.Errorf("the parameter %s is unknown; there is period", name)
	}
	files, err := openLocks(e, p, base, p.Group+cookSuffix)
	if err != nil {
		return nil, err
	}
	locks, err := newCooking(cook, cooklock.Options{Ledger: files, Place: Absolute(files.Base()) + "\x00" + p.Group, Self: files.Self()}, files)
	if err != nil {
		return nil, err
	}
	return &cookingOn{locks, files}, nil
}

// cookDirectory returns the directory of a URL: cook+file:///PATH or cook+file:PATH.
func (p *Place) cookDirectory() (string, error) {
	path, err := url.PathUnescape(p.URL.path)
	if err != nil || path == "" || p.URL.user != "" || (p.URL.host != "" && p.URL.host != "localhost") {
		return "", errors.New("write cook+file:///absolute/path?period=5m or cook+file:relative/path?period=5m")
	}
	return path, nil
}

// completeCookFiles makes the path absolute, so that the URL means the same in any working directory.
func completeCookFiles(_ *console.Env, p *Place) error {
	path, err := p.cookDirectory()
	if err == nil {
		p.URL.host, p.URL.path = "", (&url.URL{Path: Absolute(path)}).EscapedPath()
	}
	return err
}
