//go:build !no_mongodb || !no_cloudshell || !no_etcd || !no_postgres

package place

import (
	"errors"
	"net"
	"strings"
)

// way is how the servers of a source are reached.
type way struct {
	hosts               []string // with their ports, or without
	encrypted, verified bool
	toEncrypt, toVerify string // what to do about it
	accepted            bool   // the URL says that nothing is to be encrypted
	toAccept            string // how it says that
}

// inClear says why no password may go that way, "" if one may.
func (w way) inClear() string {
	if w.encrypted || w.accepted {
		return ""
	}
	for _, server := range w.hosts {
		if !isLocal(server) {
			return "the password would go to " + server + " unencrypted, so it is not sent; " + w.toEncrypt + ", or " + w.toAccept + " if nobody can listen on the way"
		}
	}
	return ""
}

// checkPassword refuses a URL with a password that must not go its way.
func (p Place) checkPassword(full string) error {
	if a, _ := parseAddress(full); a.password != "" && p.InClear != "" {
		return errors.New(p.InClear)
	}
	return nil
}

// exposed says what somebody on the way to a server could do, if it leaves this host.
func (w way) exposed() string {
	for _, server := range w.hosts {
		switch {
		case isLocal(server):
		case !w.encrypted:
			return "nothing is encrypted on the way to " + server + ": whoever is in between can get at the password and at the locks; " + w.toEncrypt
		case !w.verified:
			return "any certificate will do for " + server + ": whoever is in between can get at the password and at the locks; " + w.toVerify
		}
	}
	return ""
}

// isLocal says whether a server is on this host. A socket has a path.
func isLocal(server string) bool {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		host = strings.Trim(server, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || ip != nil && ip.IsLoopback()
}
