//go:build no_mongodb

package place

import (
	"context"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
)

func openMongo(context.Context, *console.Env, Place) (multilock.Source, error) {
	return nil, withoutSource("MongoDB", "no_mongodb")
}

func openCookMongo(context.Context, *console.Env, Place) (multilock.Source, error) {
	return nil, withoutSource("MongoDB", "no_mongodb")
}

func completeMongo(*console.Env, *Place) error { return handOver("MongoDB", "no_mongodb") }
