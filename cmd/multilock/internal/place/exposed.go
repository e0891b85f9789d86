//go:build !no_mongodb || !no_cloudshell || !no_etcd || !no_postgres

package place

import (
	"errors"
	"net"
	"strings"
)

// way describes the connections to a source's servers.
type way struct {
	hosts               []string // with or without ports
	encrypted, verified bool
	toEncrypt, toVerify string // how to fix that
	accepted            bool   // the URL explicitly disables encryption
	toAccept            string // how a URL disables it
}

// inClear returns why no password may be sent over these connections, "" if one may.
func (w way) inClear() string {
	if w.encrypted || w.accepted {
		return ""
	}
	for _, server := range w.hosts {
		if !isLocal(server) {
			return "the password would go to " + server + " unencrypted, so it is not sent; " + w.toEncrypt + ", or " + w.toAccept + " if the network is private"
		}
	}
	return ""
}

// checkPassword rejects a URL with a password that must not be sent over its connections.
func (p Place) checkPassword(full string) error {
	if a, _ := parseAddress(full); a.password != "" && p.InClear != "" {
		return errors.New(p.InClear)
	}
	return nil
}

// exposed describes what an attacker on the network could do, "" if all is encrypted or local.
func (w way) exposed() string {
	for _, server := range w.hosts {
		switch {
		case isLocal(server):
		case !w.encrypted:
			return "nothing is encrypted on the way to " + server + ": anyone on the network path can read the password and change the locks; " + w.toEncrypt
		case !w.verified:
			return "any certificate will do for " + server + ": anyone on the network path can read the password and change the locks; " + w.toVerify
		}
	}
	return ""
}

// isLocal reports whether a server is on this host. A path is a Unix socket.
func isLocal(server string) bool {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		host = strings.Trim(server, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || ip != nil && ip.IsLoopback()
}
