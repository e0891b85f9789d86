//go:build !no_mongodb

package place

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/mongolock"
)

func openMongo(_ context.Context, e *console.Env, p Place) (multilock.Source, error) {
	place, err := mongoPlace(e, &p)
	if err != nil {
		return nil, err
	}
	return opened(mongolock.Open(mongolock.Options{Place: place, Group: p.Group, User: p.User}))
}

// completeMongo has nothing to fill in: nothing of these URLs can be left out.
func completeMongo(*console.Env, *Place) error { return nil }

// mongoPlace is the collection that the URL names.
func mongoPlace(e *console.Env, p *Place) (mongolock.Place, error) {
	full, err := p.FullURL(e)
	if err != nil {
		return mongolock.Place{}, err
	}
	a, _ := parseAddress(full)
	if a.user != "" && a.password == "" && !a.provesItself() {
		return mongolock.Place{}, fmt.Errorf("there is no password for the user %s: %s", a.user, passwordPlaces)
	}
	return mongolock.Place{URL: full}, nil
}

// provesItself says whether the URL chooses a way of authentication, some of which
// need no password: a certificate, Kerberos, a cloud's own.
func (a Address) provesItself() bool {
	return slices.ContainsFunc(a.parameters(), func(parameter string) bool {
		return strings.HasPrefix(strings.ToLower(parameter), "authmechanism=")
	})
}
