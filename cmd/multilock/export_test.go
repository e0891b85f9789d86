//go:build unix

package main

import "github.com/urfave/cli/v2"

// EachFlag is eachFlag for the tests that run the binary.
func EachFlag(do func(command string, f cli.Flag)) { eachFlag(appForTests(), do) }

// Arguments returns what each command says of its arguments.
func Arguments() map[string]string {
	usages := map[string]string{}
	for _, c := range appForTests().Commands {
		usages[c.Name] = c.ArgsUsage
	}
	return usages
}
