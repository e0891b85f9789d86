package command

import (
	"slices"

	"github.com/urfave/cli/v2"
)

// Flag is what the library asks of its options.
type Flag interface {
	cli.DocGenerationFlag
	cli.VisibleFlag
	cli.CategorizableFlag
	cli.RequiredFlag
	cli.ActionableFlag
}

// former is an option with spellings that go on working, and are shown nowhere. A letter means
// the same in all commands; where it once meant something else, it still does.
type former struct {
	Flag
	spellings []string
}

func formerly(f Flag, spellings ...string) cli.Flag { return &former{f, spellings} }

// Formerly says whether a name is a former spelling of an option.
func Formerly(f cli.Flag, name string) bool {
	old, ok := f.(*former)
	return ok && slices.Contains(old.spellings, name)
}
