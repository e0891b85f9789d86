package command

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/load"
)

// limits delay jobs on a busy host.
type limits struct {
	load    loadLimit
	memFree console.Size
}

// checkHost rejects limits that this host cannot measure or never meets.
func (l *limits) checkHost(command string) error {
	if l.load > 0 {
		if _, err := load.Average(); err != nil {
			return console.Usagef(command, "--load: the load of this host is not known: %w", err)
		}
	}
	if l.memFree > 0 {
		memory, err := load.ReadMemory()
		switch {
		case err != nil:
			return console.Usagef(command, "--memfree: the available memory of this host is not known: %w", err)
		case memory.Total <= uint64(l.memFree):
			return console.Usagef(command, "--memfree %s: this host has no more than %s in all, and would never begin a job", l.memFree, console.Size(memory.Total))
		}
	}
	return nil
}

// busy returns a function that returns why no job may start now, or ""; nil without limits. A limit that can
// no longer be measured is reported once and then ignored.
func (l *limits) busy(say func(string, ...any)) func() string {
	if *l == (limits{}) {
		return nil
	}
	var once sync.Once
	return func() string {
		overload, err := l.overload()
		shortage, bad := l.shortage()
		if err = errors.Join(err, bad); err != nil {
			once.Do(func() { say("warning: --load or --memfree cannot be kept: %v", err) })
		}
		return overload + shortage
	}
}

func (l *limits) overload() (string, error) {
	if l.load == 0 {
		return "", nil
	}
	now, err := load.Average()
	if err != nil || now <= float64(l.load) {
		return "", err
	}
	return fmt.Sprintf("load %.1f", now), nil
}

func (l *limits) shortage() (string, error) {
	if l.memFree == 0 {
		return "", nil
	}
	now, err := load.ReadMemory()
	if err != nil || now.Available >= uint64(l.memFree) {
		return "", err
	}
	return fmt.Sprintf("%s of memory free", console.Size(now.Available)), nil
}

// loadLimit is the value of --load, 0 if not given.
type loadLimit float64

func (l *loadLimit) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0) || math.IsInf(n, 0) {
		return errors.New("write a number above 0, such as 16, or a percentage of the processors, such as 80%")
	}
	if percent {
		n *= float64(load.Processors()) / 100
	}
	*l = loadLimit(n)
	return nil
}
