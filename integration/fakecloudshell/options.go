package fakecloudshell

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Scheme is how a server is reached.
type Scheme string

// The schemes.
const (
	HTTP  Scheme = "http"
	HTTPS Scheme = "https"
)

// Options are for [New].
type Options struct {
	// Address is where to listen: an address of the loopback interface and a port.
	// The default is 127.0.0.1 and a free port.
	Address string
	// Scheme is HTTP by default. With HTTPS the server makes a certificate and
	// answers nothing else on its port.
	Scheme Scheme
	// SessionLifetime is how long a token is valid; 5 hours by default.
	SessionLifetime time.Duration
	// Now is the server's clock; time.Now by default. Sessions, the cache and
	// GetServerDateAndTime go by it. It is called by many goroutines.
	Now func() time.Time
	// Latency is how long each request is under way: half of it before it is carried
	// out, and half before its answer arrives. A server at a real distance takes a
	// second. None by default.
	Latency time.Duration
	// Log gets a line for each request, and what net/http complains about; nothing
	// is logged by default. It sees no secrets.
	Log *slog.Logger

	Users        []User
	Models       []Model
	Reservations []Reservation
	Policy       Policy
	Failures     Failures
}

const (
	defaultAddress  = "127.0.0.1:0"
	defaultLifetime = 300 * time.Minute // the server's key AuthToken.ExpirationSpanMinutes
)

func (o Options) withDefaults() Options {
	if o.Address == "" {
		o.Address = defaultAddress
	}
	if o.Scheme == "" {
		o.Scheme = HTTP
	}
	if o.SessionLifetime == 0 {
		o.SessionLifetime = defaultLifetime
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Failures = o.Failures.withDefaults()
	return o
}

func (o Options) validate() error {
	if o.Scheme != HTTP && o.Scheme != HTTPS {
		return fmt.Errorf("scheme %q: use http or https", o.Scheme)
	}
	if o.SessionLifetime < 0 {
		return errors.New("session lifetime: it cannot be negative")
	}
	if o.Latency < 0 {
		return errors.New("latency: it cannot be negative")
	}
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("address %s: this server is for tests, so it listens on loopback only, such as %s", o.Address, defaultAddress)
	}
	return nil
}
