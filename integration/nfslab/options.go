//go:build linux

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/integration/nfslab/vm"
)

// options are common to run and test.
type options struct {
	files    []string      // copied to /guest
	out      string        // destination of /out, if not empty
	timeout  time.Duration // for the whole run, including the boot; zero means none
	env      []string
	memoryMB int
	accel    vm.Accel // "" selects the best one
	stdin    bool
	verbose  bool
}

const defaultMemoryMB = 1536

// parseOptions parses the leading options, which all begin with two dashes, and returns the remaining
// arguments. "--" ends the options. The flag package does not support --files, which takes all values that
// follow.
func parseOptions(args []string) (options, []string, error) {
	parsed := options{memoryMB: defaultMemoryMB}
	for len(args) > 0 && strings.HasPrefix(args[0], "--") {
		if args[0] == "--" {
			return parsed, args[1:], nil
		}
		rest, err := parsed.parseOne(args)
		if err != nil {
			return parsed, nil, err
		}
		args = rest
	}
	return parsed, args, nil
}

func (o *options) parseOne(args []string) ([]string, error) {
	name, value, inline := strings.Cut(args[0], "=")
	args = args[1:]
	switch name {
	case "--stdin":
		o.stdin = true
		return args, nil
	case "--verbose":
		o.verbose = true
		return args, nil
	case "--files":
		if !inline {
			return o.takeFiles(args)
		}
	}
	if !inline {
		if len(args) == 0 {
			return nil, fmt.Errorf("%s needs a value", name)
		}
		value, args = args[0], args[1:]
	}
	return args, o.set(name, value)
}

func (o *options) takeFiles(args []string) ([]string, error) {
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		o.files = append(o.files, args[0])
		args = args[1:]
	}
	return args, nil
}

func (o *options) set(name, value string) error {
	var err error
	switch name {
	case "--files":
		o.files = append(o.files, value)
	case "--out":
		o.out = value
	case "--env":
		o.env = append(o.env, value)
	case "--accel":
		o.accel, err = vm.ParseAccel(value)
	case "--memory":
		o.memoryMB, err = strconv.Atoi(value)
	case "--timeout":
		var seconds float64
		seconds, err = strconv.ParseFloat(value, 64)
		o.timeout = time.Duration(seconds * float64(time.Second))
	default:
		return fmt.Errorf("unknown option %s\n%s", name, usage)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
