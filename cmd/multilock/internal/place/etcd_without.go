//go:build no_etcd

package place

import (
	"context"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
)

func openEtcd(context.Context, *console.Env, Place) (multilock.Source, error) {
	return nil, completeEtcd(nil, nil)
}

func completeEtcd(*console.Env, *Place) error { return without("etcd") }
