// Package cloudshell is the lock on a reservation ("sandbox") of Quali CloudShell: the reservation
// mutex, through the automation API that every CloudShell has. It is only a lock: it has no
// results, lists of jobs or history.
//
// A script acquires that mutex by adding a service with the alias MUTEX, which the server allows
// once, and releases it by removing the service. Such scripts and this package exclude each other.
// Between users of this package more is guaranteed: each acquisition has a token, a holder sends
// heartbeats and notices that it lost the lock, the lock of a dead holder is taken over, and no
// request, however late it is carried out, changes a successor's lock. docs/cloudshell.md has the
// details and the limits.
package cloudshell

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// Options select the reservation of the locks, and its server. Server, Reservation, and either
// Token or User are required.
type Options struct {
	Server string // the host, with a port if it is not 8029
	Scheme string // https, which is the default, or http, which exposes the password on the network
	// CAFile has the certificates to verify the server, in PEM; those of the system if empty.
	// Insecure accepts any certificate, and is no safer than http.
	CAFile      string
	Insecure    bool
	Token       Secret // of a running command, valid until that ends; it takes precedence over User
	User        string
	Password    Secret
	Domain      string            // to log on to, DefaultDomain if empty
	Reservation string            // its ID
	Group       string            // a prefix of the locks' aliases; without one, a lock's name is its alias
	Model       string            // of the locks' services, DefaultModel if empty
	Attribute   string            // of the model, for the owner, DefaultAttribute if empty
	Pause       Pause             // between two attempts at a lock
	Timeout     time.Duration     // of each request, DefaultTimeout if 0
	Self        process.Identity  // the calling process, determined if zero; for tests
	Transport   http.RoundTripper // replaces the HTTP transport; for tests
}

// Pause is a random time between Least and Most. The zero value means 2 to 5 seconds, as in scripts
// of the convention.
type Pause struct{ Least, Most time.Duration }

// The defaults. DefaultName is the lock of scripts that follow the convention.
const (
	DefaultDomain    = "Global"
	DefaultModel     = "Mutex Service"
	DefaultAttribute = "Mutex Owner"
	DefaultName      = "MUTEX"
	DefaultTimeout   = 30 * time.Second
	defaultPort      = "8029"
	schemeHTTP       = "http"
	schemeHTTPS      = "https"
)

// check validates the options and fills in the defaults.
func (o Options) check() (Options, error) {
	o.Scheme = cmp.Or(o.Scheme, schemeHTTPS)
	o.Domain = cmp.Or(o.Domain, DefaultDomain)
	o.Model = cmp.Or(o.Model, DefaultModel)
	o.Attribute = cmp.Or(o.Attribute, DefaultAttribute)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Pause = cmp.Or(o.Pause, Pause{Least: 2 * time.Second, Most: 5 * time.Second})
	switch {
	case o.Server == "":
		return o, invalid("server", "", "must not be empty")
	case o.Scheme != schemeHTTP && o.Scheme != schemeHTTPS:
		return o, invalid("scheme", o.Scheme, "must be http or https")
	case o.Scheme == schemeHTTP && (o.Insecure || o.CAFile != ""):
		return o, invalid("scheme", o.Scheme, "has no certificates; use https")
	case o.Reservation == "":
		return o, invalid("reservation", "", "must not be empty; it is the ID that the portal shows in the sandbox's address")
	case o.Token.IsZero() && o.User == "":
		return o, invalid("user", "", "must not be empty without a token; write USER@ before the host, or put the token of a running command into "+EnvToken)
	case o.Timeout < 0 || o.Pause.Least < 0 || o.Pause.Most < o.Pause.Least:
		return o, invalid("option", "timeout or pause", "must be positive, and the least pause not above the most")
	}
	at := url.URL{Host: o.Server}
	host := at.Hostname()
	if host == "" || strings.ContainsAny(host, "/?#@ ") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
		return o, invalid("server", o.Server, "write HOST or HOST:PORT")
	}
	o.Server = net.JoinHostPort(host, cmp.Or(at.Port(), defaultPort)) // HTTPS has the same port as HTTP
	return o, nil
}

func invalid(what, got, why string) error {
	return &source.InvalidError{What: "cloudshell " + what, Got: got, Why: why}
}

// Source has the locks of one group in one reservation.
type Source struct {
	remote.Member
	opt    Options
	client *client
	prefix string // of the group's aliases
	digest string // of the reservation's ID
	clock  source.Clock
	// clockless means that the server has no call for its time; guarded by clock.
	clockless bool
}

var (
	_ source.Timekeeper  = (*Source)(nil)
	_ source.NameChecker = (*Source)(nil)
	_ source.Describer   = (*Source)(nil)
	_ source.Examiner    = (*Source)(nil)
	_ source.Paced       = (*Source)(nil)
	_ source.Group       = (*Source)(nil)
)

// Open prepares to use the locks of a reservation. It makes no request: the first request logs on.
// The error is source.ErrInvalid for invalid options.
func Open(opt Options) (*Source, error) {
	opt, err := opt.check()
	if err != nil {
		return nil, err
	}
	member, err := remote.Options[Options]{Group: opt.Group, Self: opt.Self}.Join("cloudshell")
	if err != nil {
		return nil, err
	}
	opt.Self = member.Self()
	c, err := newClient(opt)
	if err != nil {
		return nil, err
	}
	return &Source{Member: member, opt: opt, client: c, prefix: prefixOf(opt.Group), digest: digestOf(opt.Reservation)}, nil
}

// Close closes the connections. Locks that were acquired through the source stay held, and can
// still be renewed and released. It does not log off, because that may end a token that other
// processes use.
func (s *Source) Close() error {
	s.client.http.CloseIdleConnections()
	return nil
}

// Pace implements source.Paced.
func (s *Source) Pace() (least, most time.Duration) { return s.opt.Pause.Least, s.opt.Pause.Most }

// Names implements source.Source, with one listing.
func (s *Source) Names(ctx context.Context) ([]string, error) {
	views, err := s.views(ctx)
	if err != nil {
		return nil, s.Named(ctx, "list the locks", "", err)
	}
	var names []string
	for base, v := range views {
		// A reservation has other services, too.
		isLock := len(v.turns) > 0 || v.bare.why == "" || v.bare.model == s.opt.Model || base == DefaultName
		if name, ok := s.nameOf(base); ok && isLock && s.read(v).isHeld {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Empty implements source.Group, with one listing.
func (s *Source) Empty(ctx context.Context) (bool, error) {
	names, err := s.Names(ctx)
	return err == nil && len(names) == 0, err
}

// Guarantees implements source.Describer.
func (s *Source) Guarantees() []source.Guarantee {
	const instead = "use a directory, MongoDB, etcd or PostgreSQL for that"
	return []source.Guarantee{
		source.Keeps(source.TraitSafeSilence, "a holder gives its lock up after four fifths of its TTL without a confirmed heartbeat"),
		source.Keeps(source.TraitNamedHolder, "host, process, user and the beginning of its command; of a script, the owner that it wrote, if any"),
		source.GuaranteeOfDeath(s.Self()),
		source.Keeps(source.TraitBreakByEvidence, "when its process is gone, or after its TTL without a heartbeat and a while of watching; a script's lock only by force"),
		source.Keeps(source.TraitBreakByForce, "its services are removed; the holder notices at its next heartbeat"),
		source.Keeps(source.TraitPromptRelease, "its service is removed, and the next attempt acquires it"),
		source.Lacks(source.TraitJobMark, "the owner's attribute has no room for a process group; a job's processes are known by their environment alone"),
		source.Keeps(source.TraitFenceNumbers, "the turns of the lock's register, which only grow unless all of them are deleted by hand"),
		source.Lacks(source.TraitQueue, "the first attempt after a release gets the lock"),
		source.Keeps(source.TraitOneClock, "the CloudShell server's, by GetServerDateAndTime"),
		source.Keeps(source.TraitCheapBarrier, "one listing of the reservation's services, past the server's cache"),
		source.Lacks(source.TraitResults, "a CloudShell sandbox has the lock alone: use run -n NAME without it, or "+instead),
		source.Lacks(source.TraitManifest, "a CloudShell sandbox has the lock alone: "+instead),
		source.Lacks(source.TraitHistory, "a CloudShell sandbox has the lock alone: "+instead),
	}
}
