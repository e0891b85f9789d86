package main

import (
	"slices"
	"strconv"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/urfave/cli/v2"
)

// common holds the options that every command has, before or after its name.
type common struct {
	base                 string  // the directory with the locks, if they live in one
	url                  address // of a source that is something else
	group, name          string
	usualGroup           string // the group that the source means if none is named
	user                 string // who runs this, for people
	legacyPeers          bool
	json, quiet, verbose bool
}

// commonFlags are defined twice, for the program and for each command. The
// environment is not left to the library: an option on the command line wins
// over it wherever it stands, and an empty variable counts as none.
func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "dir", Aliases: []string{"d"}, Usage: "the shared `DIRECTORY` with the locks (default: .) [$" + envDir + "]", Category: "LOCK"},
		&cli.StringFlag{Name: "group", Aliases: []string{"g"}, Usage: "the lock `GROUP`, a directory in it (default: .locks; of another source, what has no group) [$" + envGroup + "]", Category: "LOCK"},
		&cli.StringFlag{Name: "name", Aliases: []string{"n", "lockname", "l"}, Usage: "the lock's `NAME` (default: lock; of a CloudShell reservation, MUTEX)", Category: "LOCK"},
		&cli.StringFlag{Name: "source", Usage: "where the locks live, as a `URL`; -d DIRECTORY stands for file:DIRECTORY; see multilock --help [$" + envSource + "]", Category: "LOCK"},
		toggle("legacy-peers", "hosts with the Python MultiLock use the same group; all hosts must say so [$"+envLegacyPeers+"]", "LOCK"),
		toggle("json", "print the result as JSON", "OUTPUT"),
		toggle("quiet", "print errors only; a refusal is none, its exit code says enough", "OUTPUT", "q"),
		toggle("verbose", "print what is done, too", "OUTPUT", "v"),
	}
}

// The variables that stand for options.
const (
	envDir         = "MULTILOCK_DIR"
	envGroup       = "MULTILOCK_GROUP"
	envSource      = "MULTILOCK_SOURCE"
	envLegacyPeers = "MULTILOCK_LEGACY_PEERS"
	// The password of a source's user is nothing for a command line.
	envPassword     = "MULTILOCK_PASSWORD"
	envPasswordFile = "MULTILOCK_PASSWORD_FILE"
)

// toggle is an option without a value, and without a remark on its default.
func toggle(name, usage, category string, aliases ...string) *cli.BoolFlag {
	return &cli.BoolFlag{Name: name, Aliases: aliases, Usage: usage, Category: category, DisableDefaultText: true}
}

// readCommon reads the options that every command has. An option that is there
// but empty comes from a shell variable that was never set: to put the default
// in its place would lock somewhere else than was meant.
func readCommon(c *cli.Context, e *env) (common, error) {
	o := common{
		group: commonString(c, "group", e.Getenv(envGroup)),
		name:  commonString(c, "name", ""),
		user:  userName(e), json: commonBool(c, "json"), quiet: commonBool(c, "quiet"), verbose: commonBool(c, "verbose"),
	}
	for _, name := range []string{"dir", "group", "name", "source"} {
		if level := givenAt(c, name); level != nil && level.String(name) == "" {
			return o, console.Usagef(c.Command.Name, "--%s is empty", name)
		}
	}
	legacy, err := legacyPeers(c, e)
	if err != nil {
		return o, err
	}
	o.legacyPeers = legacy
	return o, o.readPlace(c, e)
}

func legacyPeers(c *cli.Context, e *env) (bool, error) {
	text := e.Getenv(envLegacyPeers)
	if givenAt(c, "legacy-peers") != nil || text == "" {
		return commonBool(c, "legacy-peers"), nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, console.Usagef(c.Command.Name, "%s=%q: write 1 or 0", envLegacyPeers, text)
	}
	return value, nil
}

// givenAt finds where on the command line an option is given: at the command
// itself, or before it.
func givenAt(c *cli.Context, name string) *cli.Context {
	for _, level := range c.Lineage() {
		if slices.Contains(level.LocalFlagNames(), name) {
			return level
		}
	}
	return nil
}

// namesAsked are the locks that a command is to deal with, as arguments or with
// -n; none if nothing was said.
func namesAsked(c *cli.Context) []string {
	names := c.Args().Slice()
	if level := givenAt(c, "name"); level != nil && !slices.Contains(names, level.String("name")) {
		names = append(names, level.String("name"))
	}
	return names
}

func commonString(c *cli.Context, name, fromEnv string) string {
	if level := givenAt(c, name); level != nil {
		return level.String(name)
	}
	return fromEnv
}

func commonBool(c *cli.Context, name string) bool {
	level := givenAt(c, name)
	return level != nil && level.Bool(name)
}
