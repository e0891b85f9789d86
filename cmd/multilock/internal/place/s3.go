//go:build !no_s3

package place

import (
	"context"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/s3lock"
)

// openS3 reads no password: credentials come from the environment, a profile, or the instance.
func openS3(_ context.Context, _ *console.Env, p Place) (multilock.Source, error) {
	return opened(s3lock.Open(s3lock.Options{Place: s3lock.Place{URL: p.URL.String()}, Group: p.Group, User: p.User}))
}

// completeS3 fills in nothing: these URLs have no optional parts.
func completeS3(*console.Env, *Place) error { return nil }
