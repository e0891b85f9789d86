//go:build !manual

package main

import (
	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/command"
)

// forRelease are the commands of a program that makes a release; see manual.go.
func forRelease(*command.Env) []*cli.Command { return nil }
