package place

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"github.com/multilock/go/multilock/shareddir"
)

// trustAnybody is the value of --trust that trusts all users.
const trustAnybody = "any"

// readTrust parses a list of users, by name or number, or trustAnybody.
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
