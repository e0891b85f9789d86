//go:build !no_mongodb

package place

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

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
	if err := mongolock.CheckURL(place.URL); err != nil {
		return nil, err
	}
	registers := &mongoRegisters{place: place, opened: map[string]*mongolock.Register{}}
	locks, err := newCooking(cook, cooklock.Options{Open: registers.register, Place: p.URL.public()}, registers)
	if err != nil {
		return nil, err
	}
	return locks, nil
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

// mongoRegisters are the registers of one collection, each of which is opened once:
// it has connections of its own.
type mongoRegisters struct {
	place  mongolock.Place
	mu     sync.Mutex
	opened map[string]*mongolock.Register
}

func (m *mongoRegisters) register(name string) (cooklock.Register, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.opened[name]; r != nil {
		return r, nil
	}
	r, err := mongolock.OpenRegister(mongolock.RegisterOptions{Place: m.place, Name: name})
	if err != nil {
		return nil, err
	}
	m.opened[name] = r
	return r, nil
}

// Close ends the connections.
func (m *mongoRegisters) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, r := range m.opened {
		errs = append(errs, r.Close())
	}
	clear(m.opened)
	return errors.Join(errs...)
}
