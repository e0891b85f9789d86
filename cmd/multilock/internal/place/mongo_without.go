//go:build no_mongodb

package place

import (
	"context"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
)

func openMongo(context.Context, *console.Env, Place) (multilock.Source, error) {
	return nil, completeMongo(nil, nil)
}

func openCookMongo(context.Context, *console.Env, Place) (multilock.Source, error) {
	return nil, completeMongo(nil, nil)
}

func completeMongo(*console.Env, *Place) error { return without("MongoDB") }
