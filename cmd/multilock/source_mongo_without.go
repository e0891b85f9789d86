//go:build no_mongodb

package main

import (
	"context"

	"github.com/multilock/go/multilock"
)

func openMongo(context.Context, *env, common) (multilock.Source, error) {
	return nil, withoutSource("MongoDB", "no_mongodb")
}

func openCookMongo(context.Context, *env, common) (multilock.Source, error) {
	return nil, withoutSource("MongoDB", "no_mongodb")
}

func completeMongo(*env, *common) error { return handOver("MongoDB", "no_mongodb") }
