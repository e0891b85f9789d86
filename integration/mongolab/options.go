package mongolab

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"
)

// Options configure a server. The zero value lacks a Dir.
type Options struct {
	// Dir is an existing directory for the embedded server's data. Start creates one and removes it
	// after the test.
	Dir string
	// Server is the URI of a real server, used instead of the embedded one: a single host, which must
	// be the primary if it belongs to a replica set, without TLS. Start takes it from the environment.
	Server string
	// ReplicaSet makes the embedded server present itself as the primary of a replica set, and handle a
	// driver's retried writes like one. It has no effect on a real server.
	ReplicaSet bool
	// Latency is the travel time of each command: half of it before the command is executed, half
	// before its reply arrives. Other connections are not delayed.
	Latency time.Duration
	// Disguised hides that the embedded server is FerretDB, from programs that rightly reject FerretDB
	// and cannot know about the proxy. It has no effect on a real server.
	Disguised bool
}

// place is the validated form of Options: the location of the server behind the proxy.
type place struct {
	dir  string   // of the embedded server
	real *url.URL // nil for the embedded server
}

func (o Options) place() (place, error) {
	p := place{dir: o.Dir}
	if o.Server == "" {
		return p, o.checkEmbedded()
	}
	if o.ReplicaSet {
		return p, errors.New("mongolab: ReplicaSet is of the embedded server; a real one is what it is")
	}
	var err error
	p.real, err = parseServer(o.Server)
	return p, err
}

func (o Options) checkEmbedded() error {
	info, err := os.Stat(o.Dir)
	if err != nil {
		return fmt.Errorf("mongolab: the directory for the data: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("mongolab: the directory for the data: %s is not a directory", o.Dir)
	}
	return nil
}

// parseServer validates the URI of a real server. Errors do not include the URI, which may contain a
// password.
func parseServer(uri string) (*url.URL, error) {
	real, err := url.Parse(uri)
	if err != nil || real.Scheme != "mongodb" || real.Hostname() == "" || strings.Contains(real.Host, ",") {
		return nil, errors.New("mongolab: the real server: want mongodb://HOST:PORT/ with one host, the primary")
	}
	query := real.Query()
	for _, option := range []string{"tls", "ssl"} {
		if query.Get(option) == "true" {
			return nil, errors.New("mongolab: the real server: the proxy has to read the commands, so leave TLS out")
		}
	}
	if real.Port() == "" {
		const usual = "27017"
		real.Host = net.JoinHostPort(real.Hostname(), usual)
	}
	return real, nil
}
