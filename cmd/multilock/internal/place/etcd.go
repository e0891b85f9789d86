//go:build !no_etcd

package place

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/etcdlock"
)

func openEtcd(_ context.Context, e *console.Env, p Place) (multilock.Source, error) {
	full, err := p.FullURL(e)
	if err != nil {
		return nil, err
	}
	if a, _ := parseAddress(full); a.user != "" && a.password == "" {
		return nil, fmt.Errorf("there is no password for the user %s: %s", a.user, passwordPlaces)
	}
	if err := p.checkPassword(full); err != nil {
		return nil, err
	}
	return opened(etcdlock.Open(etcdlock.Options{Place: etcdlock.Place{URL: full}, Group: p.Group, User: p.User}))
}

// completeEtcd fills in nothing: these URLs have no optional parts.
func completeEtcd(_ *console.Env, p *Place) error {
	if p.URL.user == "" {
		return nil
	}
	encrypted := slices.ContainsFunc(p.URL.parameters(), func(parameter string) bool {
		name, _ := key(parameter)
		return slices.Contains([]string{"cafile", "certfile", "keyfile", "servername"}, name) || parameter == "tls=true"
	})
	w := way{
		hosts: strings.Split(p.URL.host, ","), encrypted: encrypted, verified: true, toEncrypt: "add tls=true to the URL",
		accepted: slices.Contains(p.URL.parameters(), "tls=false"), toAccept: "tls=false",
	}
	p.Exposed, p.InClear = w.exposed(), w.inClear()
	return nil
}
