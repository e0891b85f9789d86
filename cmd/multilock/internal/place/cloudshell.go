//go:build !no_cloudshell

package place

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cloudshell"
)

func openCloudshell(_ context.Context, e *console.Env, p Place) (multilock.Source, error) {
	at, err := locateCloudshell(e, &p)
	if err != nil {
		return nil, err
	}
	at.Group = p.Group
	if at.Token.IsZero() && at.User != "" && at.Password.IsZero() {
		return nil, fmt.Errorf("there is no password for the user %s: %s", at.User, passwordPlaces)
	}
	return opened(cloudshell.Open(at.Options))
}

func locateCloudshell(e *console.Env, p *Place) (cloudshell.Location, error) {
	full, err := p.FullURL(e)
	if err != nil {
		return cloudshell.Location{}, err
	}
	environ := e.Environ()
	if p.Token != "" {
		environ = append(slices.Clip(environ), cloudshell.EnvToken+"="+p.Token)
	}
	return cloudshell.Locate(full, environ)
}

// completeCloudshell adds the reservation to the URL "cloudshell:", so that the URL means the same in a
// message, and in a keeper that outlives the script. The user still comes from CloudShell's
// environment: its token is not part of the URL.
func completeCloudshell(e *console.Env, p *Place) error {
	at, err := locateCloudshell(e, p)
	if err != nil {
		return err
	}
	if at.Group != "" && p.Group != "" && at.Group != p.Group {
		return fmt.Errorf("the group is %q in the URL and %q in -g or %s; leave one of them out", at.Group, p.Group, EnvGroup)
	}
	if p.Group == "" {
		p.Group = at.Group
	}
	if p.Name == "" {
		p.Name = at.Name
	}
	if at.Server == "" || at.Reservation == "" {
		return errors.New("it names no reservation, and this is not the environment of a CloudShell script, which would name one; write cloudshell://USER@HOST/RESERVATION")
	}
	p.URL.host, p.URL.path = at.Server, "/"+url.PathEscape(at.Reservation)
	p.complement("domain", at.Domain, cloudshell.DefaultDomain)
	p.complement("scheme", at.Scheme, "https")
	p.Exposed = way{
		hosts: []string{at.Server}, encrypted: at.Scheme != "http", verified: !at.Insecure,
		toEncrypt: "leave scheme=http out", toVerify: "name the right one with cafile=FILE instead of insecure=true",
	}.exposed()
	return nil
}

// complement adds a parameter from the environment to the URL, unless it has its default value.
func (p *Place) complement(name, value, usual string) {
	if value != "" && value != usual && !slices.ContainsFunc(p.URL.parameters(), hasKey(name)) {
		p.URL.query = strings.TrimPrefix(p.URL.query+"&"+name+"="+url.QueryEscape(value), "&")
	}
}
