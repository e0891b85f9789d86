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

func openCookMongo(_ context.Context, e *console.Env, p Place) (multilock.Source, error) {
	cook, err := readCooking(p.URL)
	if err != nil {
		return nil, err
	}
	p.URL.scheme = strings.TrimPrefix(p.URL.scheme, "cook+")
	p.URL.query = strings.Join(cook.others, "&")
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
