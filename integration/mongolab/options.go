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

// Options say which server there is to be. The zero value needs a Dir.
type Options struct {
	// Dir is an existing directory for the data of the embedded server. Start makes
	// one that ends with the test.
	Dir string
	// Server is the URI of a real server that is used in place of the embedded one: a
	// single host, which is the primary if it belongs to a replica set, and no TLS.
	// Start takes it from the environment.
	Server string
	// ReplicaSet makes the embedded server say that it is the primary of a replica
	// set, and answer writes that a driver repeats as such a one does. A real server
	// says itself what it is.
	ReplicaSet bool
	// Latency is how long each command is under way: half of it before it is carried
	// out, and half before its reply arrives. Other connections go on meanwhile.
	Latency time.Duration
	// Disguised keeps the embedded server from saying that it is FerretDB, to programs
	// that rightly refuse that one and cannot know of the proxy. A real server says
	// what it is.
	Disguised bool
}

// place is the checked form of Options: where the server behind the proxy is.
type place struct {
	dir  string   // of the embedded server
	real *url.URL // nil for the embedded one
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

// parseServer checks the URI of a real server. Passwords may be in it, so that no
// error repeats it.
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
