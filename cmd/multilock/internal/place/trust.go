package place

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"github.com/multilock/go/multilock/shareddir"
)

// trustAnybody is the word of --trust for everybody.
const trustAnybody = "any"

// checkTrust reads --trust, which means something in a directory alone. What the
// environment says may be meant for others.
func (p *Place) checkTrust(a Asked) error {
	if !strings.HasSuffix(p.scheme(), fileScheme) {
		if a.Trust != nil {
			return fmt.Errorf("--trust: %s has users of its own; it is for locks in a directory", p.Public())
		}
		if a.RequireShared != nil && p.RequireShared {
			return fmt.Errorf("--require-shared: all hosts see the same %s; it is for locks in a directory", p.Public())
		}
		p.Trust, p.RequireShared = "", false
	}
	_, err := readTrust(p.Trust)
	return err
}

// readTrust reads a list of users, by name or number, or the word for everybody.
func readTrust(text string) (shareddir.Trust, error) {
	switch text {
	case "":
		return shareddir.Trust{}, nil
	case trustAnybody:
		return shareddir.Trust{Anybody: true}, nil
	}
	var trust shareddir.Trust
	for name := range strings.SplitSeq(text, ",") {
		uid, err := userID(name)
		if err != nil {
			return trust, fmt.Errorf("--trust (or %s) %q: %w; write names or numbers of users with commas between them, or %q", EnvTrust, text, err, trustAnybody)
		}
		trust.Users = append(trust.Users, uid)
	}
	return trust, nil
}

func userID(name string) (uint32, error) {
	if u, err := user.Lookup(name); err == nil {
		name = u.Uid
	}
	uid, err := strconv.ParseUint(name, 10, 32)
	if err != nil {
		return 0, errors.New("there is no user " + strconv.Quote(name))
	}
	return uint32(uid), nil
}
