package command

import (
	"cmp"
	"runtime"

	"github.com/urfave/cli/v2"
)

// Build describes how this program was built.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"` // "" if unknown
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Complete fills in what the Go runtime knows.
func (b Build) Complete() Build {
	b.Version = cmp.Or(b.Version, "(development)")
	b.Go, b.OS, b.Arch = runtime.Version(), runtime.GOOS, runtime.GOARCH
	return b
}

// Version prints the version of this program.
func Version(e *Env, b Build) *cli.Command {
	return &cli.Command{
		Name:        "version",
		Usage:       "print the version, the commit, and the version of Go",
		Description: "Prints the version, the commit it was built from, and the version of Go.",
		Action: func(c *cli.Context) error {
			if err := e.check(c); err != nil {
				return err
			}
			if e.out.JSON {
				return e.PrintJSON(b)
			}
			return e.Print("multilock %s\ncommit %s\n%s %s/%s\n", b.Version, cmp.Or(b.Commit, "unknown"), b.Go, b.OS, b.Arch)
		},
	}
}
