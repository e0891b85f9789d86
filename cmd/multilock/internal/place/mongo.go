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

// completeMongo has nothing to fill in: nothing of these URLs can be left out.
func completeMongo(_ *console.Env, p *Place) error {
	p.Exposed, p.InClear = exposedMongo(p.URL)
	return nil
}

// exposedMongo is about a URL with a user. It asks nobody, not about mongodb+srv either,
// whose connections are encrypted unless the URL says otherwise.
func exposedMongo(a Address) (exposed, inClear string) {
	service := strings.HasSuffix(a.scheme, "+srv")
	named := a.user != ""
	a.scheme, a.user, a.password = "mongodb", "", ""
	read, err := connstring.Parse(a.String())
	if err != nil || !named {
		return "", "" // mongolock says what is wrong with it
	}
	w := way{
		hosts: read.Hosts, encrypted: read.SSL || service && !read.SSLSet, verified: !read.SSLInsecure,
		toEncrypt: "add tls=true to the URL", toVerify: "name the right one with tlsCAFile=FILE instead of tlsInsecure=true",
		accepted: read.SSLSet, toAccept: "tls=false",
	}
	return w.exposed(), w.inClear()
}

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
	return mongolock.Place{URL: full}, p.checkPassword(full)
}

// provesItself says whether the URL chooses a way of authentication, some of which
// need no password: a certificate, Kerberos, a cloud's own.
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

// checkMongoParameters refuses what the driver does not know, and would ignore: it
// could be a misspelled period.
func checkMongoParameters(query string) error {
	known, err := connstring.Parse("mongodb://localhost/?" + query)
	var unknown []string
	if err == nil { // otherwise mongolock says what is wrong with the whole URL
		unknown = slices.Sorted(maps.Keys(known.UnknownOptions))
	}
	if len(unknown) > 0 {
		return fmt.Errorf("the parameter %s is unknown; there are period, and those of a MongoDB connection string", unknown[0])
	}
	return nil
}
