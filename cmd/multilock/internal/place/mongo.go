//go:build !no_mongodb

package place

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/mongolock"
)

func openMongo(_ context.Context, e *console.Env, p Place) (multilock.Source, error) {
	place, err := mongoPlace(e, &p)
	if err != nil {
		return nil, err
	}
	return opened(mongolock.Open(mongolock.Options{Place: place, Group: p.Group, User: p.User}))
}

// completeMongo fills in nothing: these URLs have no optional parts.
func completeMongo(_ *console.Env, p *Place) error {
	p.Exposed, p.InClear = exposedMongo(p.URL)
	return nil
}

// exposedMongo checks the connections of a URL with a user. It sends no request, not even for
// mongodb+srv, whose connections are encrypted unless the URL disables that.
func exposedMongo(a Address) (exposed, inClear string) {
	service := strings.HasSuffix(a.scheme, "+srv")
	named := a.user != ""
	a.scheme, a.user, a.password = "mongodb", "", ""
	read, err := connstring.Parse(a.String())
	if err != nil || !named {
		return "", "" // left to mongolock's error
	}
	w := way{
		hosts: read.Hosts, encrypted: read.SSL || service && !read.SSLSet, verified: !read.SSLInsecure,
		toEncrypt: "add tls=true to the URL", toVerify: "name the right one with tlsCAFile=FILE instead of tlsInsecure=true",
		accepted: read.SSLSet, toAccept: "tls=false",
	}
	return w.exposed(), w.inClear()
}

// mongoPlace returns the collection that the URL names.
func mongoPlace(e *console.Env, p *Place) (mongolock.Place, error) {
	full, err := p.FullURL(e)
	if err != nil {
		return mongolock.Place{}, err
	}
	a, _ := parseAddress(full)
	if a.user != "" && a.password == "" && !a.provesItself() {
		return mongolock.Place{}, fmt.Errorf("there is no password for the user %s: %s", a.user, passwordPlaces)
	}
	return mongolock.Place{URL: full}, p.checkPassword(full)
}

// provesItself reports whether the URL selects an authentication mechanism. Some need no password: a
// certificate, Kerberos, a cloud's own.
func (a Address) provesItself() bool {
	return slices.ContainsFunc(a.parameters(), hasKey("authmechanism"))
}

func openCookMongo(_ context.Context, e *console.Env, p Place) (multilock.Source, error) {
	cook, err := readCooking(p.URL)
	if err != nil {
		return nil, err
	}
	p.URL = p.URL.uncooked(cook)
	if err := checkMongoParameters(p.URL.query); err != nil {
		return nil, err
	}
	place, err := mongoPlace(e, &p)
	if err != nil {
		return nil, err
	}
	registers, err := mongolock.OpenRegisters(place)
	if err != nil {
		return nil, err
	}
	register := func(name string) (cooklock.Register, error) { return registers.Register(name) }
	return opened(newCooking(cook, cooklock.Options{Open: register, Place: p.URL.public()}, registers))
}

// checkMongoParameters rejects parameters that the driver does not know, because it would ignore
// them: one could be a misspelled period.
func checkMongoParameters(query string) error {
	known, err := connstring.Parse("mongodb://localhost/?" + query)
	var unknown []string
	if err == nil { // otherwise mongolock reports an error for the whole URL
		unknown = slices.Sorted(maps.Keys(known.UnknownOptions))
	}
	if len(unknown) > 0 {
		return fmt.Errorf("the parameter %s is unknown; there are period, and those of a MongoDB connection string", unknown[0])
	}
	return nil
}
