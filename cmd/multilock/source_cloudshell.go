//go:build !no_cloudshell

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cloudshell"
)

func openCloudshell(ctx context.Context, e *env, o common) (multilock.Source, error) {
	at, err := locateCloudshell(e, &o)
	if err != nil {
		return nil, err
	}
	at.Group = o.group
	if at.Token.IsZero() && at.User != "" && at.Password.IsZero() {
		return nil, fmt.Errorf("there is no password for the user %s: %s", at.User, passwordPlaces)
	}
	s, err := cloudshell.Open(at.Options)
	if err != nil {
		return nil, err
	}
	// What a command can do here depends on the service model: it is told before
	// anything is done.
	if err := s.Ready(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func locateCloudshell(e *env, o *common) (cloudshell.Location, error) {
	full, err := o.fullURL(e)
	if err != nil {
		return cloudshell.Location{}, err
	}
	return cloudshell.Locate(full, e.Environ())
}

// completeCloudshell makes of "cloudshell:" a URL that says which reservation is
// meant, and so means the same in a message, and in a keeper that outlives the script.
// Who the user is stays what CloudShell tells: its token is no part of a URL.
func completeCloudshell(e *env, o *common) error {
	at, err := locateCloudshell(e, o)
	if err != nil {
		return err
	}
	if at.Group != "" && o.group != "" && at.Group != o.group {
		return fmt.Errorf("the group is %q in the URL and %q in -g or %s; leave one of them out", at.Group, o.group, envGroup)
	}
	if o.group == "" {
		o.group = at.Group
	}
	if o.name == "" {
		o.name = at.Name
	}
	if at.Server == "" || at.Reservation == "" {
		return errors.New("it does not say which reservation is meant, and this is not the environment of a CloudShell script, which would; write cloudshell://USER@HOST/RESERVATION")
	}
	o.url.host, o.url.path = at.Server, "/"+url.PathEscape(at.Reservation)
	if at.Domain != "" && at.Domain != cloudshell.DefaultDomain && !slices.ContainsFunc(o.url.parameters(), isDomain) {
		o.url.query = strings.TrimPrefix(o.url.query+"&"+domainParameter+url.QueryEscape(at.Domain), "&")
	}
	return nil
}

const domainParameter = "domain="

func isDomain(parameter string) bool { return strings.HasPrefix(parameter, domainParameter) }
