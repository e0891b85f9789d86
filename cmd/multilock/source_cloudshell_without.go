//go:build no_cloudshell

package main

import (
	"context"

	"github.com/multilock/go/multilock"
)

func openCloudshell(context.Context, *env, common) (multilock.Source, error) {
	return nil, withoutSource("CloudShell", "no_cloudshell")
}

func completeCloudshell(*env, *common) error { return handOver("CloudShell", "no_cloudshell") }
