//go:build no_cloudshell

package place

import (
	"context"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
)

func openCloudshell(context.Context, *console.Env, Place) (multilock.Source, error) {
	return nil, withoutSource("CloudShell", "no_cloudshell")
}

func completeCloudshell(*console.Env, *Place) error { return handOver("CloudShell", "no_cloudshell") }
