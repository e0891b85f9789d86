//go:build no_postgres

package place

import (
	"context"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
)

func openPostgres(context.Context, *console.Env, Place) (multilock.Source, error) {
	return nil, completePostgres(nil, nil)
}

func completePostgres(*console.Env, *Place) error { return without("PostgreSQL") }
