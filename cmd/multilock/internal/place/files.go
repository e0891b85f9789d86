package place

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/span"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// EnvHistoryKeep is how long the history in a directory is kept.
const EnvHistoryKeep = "MULTILOCK_HISTORY_KEEP"

// fileScheme is the scheme of the source that -d selects.
const fileScheme = "file"

func openFiles(_ context.Context, e *console.Env, p Place) (multilock.Source, error) {
	locks, err := openLocks(e, p, p.Base, p.Group)
	return opened(locks, err)
}

// openLocks opens a group's locks in a directory, and prints warnings about it.
func openLocks(e *console.Env, p Place, base, group string) (*fslock.Source, error) {
	trust, err := readTrust(p.Trust)
	if err != nil {
		return nil, err
	}
	keep, err := HistoryKeep(e)
	if err != nil {
		return nil, err
	}
	locks, err := fslock.Open(fslock.Options{
		Base: base, Group: group, LegacyPeers: p.LegacyPeers, User: p.User, Trust: trust, HistoryKeep: keep,
		Warn: func(text string) { e.Say("warning: %s", text) },
	})
	if err != nil {
		return nil, err
	}
	if p.RequireShared {
		if err := checkShared(locks); err != nil {
			return nil, errors.Join(err, locks.Close())
		}
	}
	if locks.Notice() != "" {
		e.Say("%s", locks.Notice())
	}
	return locks, nil
}

// HistoryKeep returns how long the history in a directory is kept; negative if for ever.
func HistoryKeep(e *console.Env) (time.Duration, error) {
	text := e.Getenv(EnvHistoryKeep)
	if text == "" {
		return fslock.DefaultHistoryKeep, nil
	}
	keep, err := span.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("%s=%q: %w", EnvHistoryKeep, text, err)
	}
	if keep == 0 {
		return -1, nil
	}
	return keep, nil
}

var errNoDirectory = errors.New("write file:///absolute/path or file:relative/path")

// filePath returns the directory of a URL with this scheme: file:PATH, file:///PATH or file://localhost/PATH.
func filePath(text string) (string, error) {
	rest := text[len(fileScheme)+1:]
	switch {
	case rest == "":
		return "", errNoDirectory
	case !strings.HasPrefix(rest, "//"):
		return rest, nil
	}
	u, err := url.Parse(text)
	if err != nil || (u.Host != "" && u.Host != "localhost") || u.Path == "" {
		return "", errNoDirectory
	}
	return u.Path, nil
}
