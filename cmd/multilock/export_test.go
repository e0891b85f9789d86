//go:build unix

package main

import (
	"regexp"
	"testing"

	"github.com/multilock/go/cmd/multilock/internal/options"
)

// EachOption is eachOption for the tests that run the binary.
func EachOption(do func(command string, o *options.Option)) { eachOption(do) }

var optionsInUsage = regexp.MustCompile(`-\w \w+`)

// Arguments returns each command's description of its arguments.
func Arguments() map[string]string {
	usages := map[string]string{}
	for _, c := range appForTests().Commands {
		usages[c.Name] = optionsInUsage.ReplaceAllString(c.ArgsUsage, "")
	}
	return usages
}

// RequireReference compares a page of docs/reference with what it is made from.
func RequireReference(t *testing.T, name, text string) {
	t.Helper()
	requireReference(t, name, text)
}

// Folded breaks an item of a list into lines.
func Folded(item string) string { return folded("  ", item) }
