package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/multilock/source"

	"github.com/multilock/go/internal/span"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/fslock"
)

// cooking is a source of cooking locks, and what its registers lie in.
type cooking struct {
	cookingLocks
	io.Closer
}

// cookingLocks are those of package cooklock, the classic ones as well.
type cookingLocks interface {
	source.Describer
	source.NameChecker
}

// newCooking makes the source that the URL's parameters ask for. It closes what the
// registers lie in, at once if there is an error.
func newCooking(p cookParameters, opt cooklock.Options, under io.Closer) (*cooking, error) {
	opt.Period, opt.Notes = p.period, cooklock.DefaultNotes()
	locks, err := p.locks(opt)
	if err != nil {
		return nil, errors.Join(err, under.Close())
	}
	return &cooking{locks, under}, nil
}

// cookParameters are those parameters of a URL that are about the lock itself.
type cookParameters struct {
	period, skew, delay time.Duration
	classic             bool
	others              []string // as they stand in the URL
}

func (p cookParameters) locks(opt cooklock.Options) (cookingLocks, error) {
	if p.classic {
		return cooklock.NewClassic(cooklock.ClassicOptions{Options: opt, Skew: p.skew, Delay: p.delay})
	}
	return cooklock.New(opt)
}

func readCooking(a address) (cookParameters, error) {
	var p cookParameters
	given := map[string]bool{}
	for _, parameter := range a.parameters() {
		name, text, _ := strings.Cut(parameter, "=")
		ours, err := p.read(name, text)
		switch {
		case err != nil:
			return p, fmt.Errorf("the parameter %s: %w", name, err)
		case !ours && parameter != "":
			p.others = append(p.others, parameter)
		case given[name]:
			return p, fmt.Errorf("the parameter %s is given twice", name)
		}
		given[name] = ours
	}
	if !p.classic && (given["skew"] || given["delay"]) {
		return p, errors.New("skew and delay are for classic=true; this lock needs neither")
	}
	if !given["period"] {
		return p, errors.New("the period is missing; write period=5m, the same on all hosts: it is how long the lock lasts")
	}
	return p, nil
}

// read reads a parameter, and says whether it is one about the lock.
func (p *cookParameters) read(name, text string) (ours bool, err error) {
	target := map[string]*time.Duration{"period": &p.period, "skew": &p.skew, "delay": &p.delay}[name]
	if target == nil && name != "classic" {
		return false, nil
	}
	if text, err = url.QueryUnescape(text); err != nil {
		return true, errors.New("cannot be read")
	}
	if target == nil {
		if p.classic, err = strconv.ParseBool(text); err != nil {
			err = fmt.Errorf("%q: write true or false", text)
		}
		return true, err
	}
	if *target, err = span.Parse(text); err == nil && *target == 0 {
		err = errors.New("must not be 0")
	}
	return true, err
}

// cookingFiles are cooking locks in a directory.
type cookingFiles struct {
	*cooking
	files *fslock.Source // their registers
}

// Examine implements source.Examiner.
func (c *cookingFiles) Examine(ctx context.Context) []source.Finding { return c.files.Examine(ctx) }

// cookSuffix tells the group that keeps the registers of cooking locks from that of
// other locks: a lock and a cooking lock of one name have nothing to do with each other.
const cookSuffix = ".cook"

func openCookFiles(_ context.Context, _ *env, o common) (source.Source, error) {
	base, err := o.cookDirectory()
	if err != nil {
		return nil, err
	}
	p, err := readCooking(o.url)
	if err != nil {
		return nil, err
	}
	if len(p.others) > 0 {
		name, _, _ := strings.Cut(p.others[0], "=")
		return nil, fmt.Errorf("the parameter %s is unknown; there are period, classic, skew and delay", name)
	}
	files, err := fslock.Open(fslock.Options{Base: base, Group: o.group + cookSuffix, User: o.user})
	if err != nil {
		return nil, err
	}
	locks, err := newCooking(p, cooklock.Options{Ledger: files, Place: absolute(base) + "\x00" + o.group, Self: files.Self()}, files)
	if err != nil {
		return nil, err
	}
	return &cookingFiles{locks, files}, nil
}

// cookDirectory is the directory of a URL: cook+file:///PATH or cook+file:PATH.
func (o *common) cookDirectory() (string, error) {
	path, err := url.PathUnescape(o.url.path)
	if err != nil || path == "" || o.url.user != "" || (o.url.host != "" && o.url.host != "localhost") {
		return "", errors.New("write cook+file:///absolute/path?period=5m or cook+file:relative/path?period=5m")
	}
	return path, nil
}

// completeCookFiles makes the URL mean the same in any working directory.
func completeCookFiles(_ *env, o *common) error {
	path, err := o.cookDirectory()
	if err == nil {
		o.url.host, o.url.path = "", (&url.URL{Path: absolute(path)}).EscapedPath()
	}
	return err
}
