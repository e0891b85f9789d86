//go:build no_s3

package place

import (
	"context"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
)

func openS3(context.Context, *console.Env, Place) (multilock.Source, error) {
	return nil, completeS3(nil, nil)
}

func completeS3(*console.Env, *Place) error { return without("S3") }
