package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/integration/fakecloudshell"
)

// options are what the command line says.
type options struct {
	server  fakecloudshell.Options
	rules   []fakecloudshell.Rule
	ca      string
	command string
	verbose bool
}

const usage = `usage: fakecloudshell [flags]

Serves a fake CloudShell on the loopback interface, and prints its URL. Without -user there is admin:admin:admin,
without -reservation "lab". All users may use all reservations. SIGTERM ends it.

`

// lateness is of the faults that delay something.
const lateness = 5 * time.Second

// parse reads the command line. It prints the usage if that is wrong, or asked for.
func parse(args []string, stderr io.Writer) (options, error) {
	opt := options{server: fakecloudshell.Options{Models: []fakecloudshell.Model{fakecloudshell.OwnedMutex()}}}
	flags := flag.NewFlagSet("fakecloudshell", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is told once, by main
	flags.StringVar(&opt.server.Address, "listen", "127.0.0.1:8029", "`address` of the loopback interface; port 0 is a free one")
	flags.BoolFunc("https", "speak HTTPS, with a certificate made now", func(string) error {
		opt.server.Scheme = fakecloudshell.HTTPS
		return nil
	})
	flags.StringVar(&opt.ca, "ca", "", "write the certificate that clients must trust to this `file`")
	flags.Func("user", "`name:password[:admin]`; may be repeated", opt.addUser)
	flags.Func("reservation", "`id[:domain]`; may be repeated", opt.addReservation)
	flags.Func("model", "the mutex model has an owner attribute (owner, the default), none (plain), or there is no such `model` (none)", opt.setModel)
	flags.DurationVar(&opt.server.SessionLifetime, "session", 0, "how long a session is valid (default 5h)")
	flags.DurationVar(&opt.server.Latency, "latency", 0, "how long each request is under way, as with a server that is far")
	flags.StringVar(&opt.command, "command", "", "run a command for this `user`, and print its adminAuthToken")
	flags.Func("fault", "`method:nth:what` happens to the nth call of a method, or to each if nth is 0; may be repeated. What: "+
		strings.Join(slices.Sorted(maps.Keys(faults())), ", "), opt.addRule)
	flags.BoolVar(&opt.verbose, "v", false, "write a line for each request to standard error")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stderr, usage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
	}
	if err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("%q is not a flag; see -help", flags.Arg(0))
	}
	opt.complete()
	return opt, nil
}

// complete adds what was not given, and lets every user into every reservation.
func (o *options) complete() {
	if len(o.server.Users) == 0 {
		o.server.Users = []fakecloudshell.User{{Name: "admin", Password: "admin", Admin: true}}
	}
	if len(o.server.Reservations) == 0 {
		o.server.Reservations = []fakecloudshell.Reservation{{ID: "lab"}}
	}
	domains := []string{fakecloudshell.DefaultDomain}
	for i := range o.server.Reservations {
		r := &o.server.Reservations[i]
		domains = append(domains, r.Domain)
		for _, user := range o.server.Users {
			r.Permitted = append(r.Permitted, user.Name)
		}
	}
	for i := range o.server.Users {
		o.server.Users[i].Domains = domains
	}
}

func (o *options) addUser(text string) error {
	name, rest, found := strings.Cut(text, ":")
	if !found {
		return errors.New("there is no password")
	}
	password, admin := strings.CutSuffix(rest, ":admin")
	o.server.Users = append(o.server.Users, fakecloudshell.User{Name: name, Password: password, Admin: admin})
	return nil
}

// addReservation adds one that every user may use.
func (o *options) addReservation(text string) error {
	id, domain, _ := strings.Cut(text, ":")
	o.server.Reservations = append(o.server.Reservations, fakecloudshell.Reservation{ID: id, Domain: domain})
	return nil
}

func (o *options) setModel(text string) error {
	models := map[string][]fakecloudshell.Model{
		"owner": {fakecloudshell.OwnedMutex()},
		"plain": {fakecloudshell.PlainMutex()},
		"none":  nil,
	}
	chosen, known := models[text]
	if !known {
		return errors.New("it is owner, plain or none")
	}
	o.server.Models = chosen
	return nil
}

// faults are those that have a name.
func faults() map[string]fakecloudshell.Fault {
	return map[string]fakecloudshell.Fault{
		"lost":        {Reply: fakecloudshell.Dropped},
		"failed":      {Status: http.StatusInternalServerError},
		"torn":        {Reply: fakecloudshell.Torn},
		"withheld":    {Reply: fakecloudshell.Withheld},
		"endless":     {Reply: fakecloudshell.Endless},
		"dropped":     {Execute: fakecloudshell.Never, Reply: fakecloudshell.Dropped},
		"unavailable": {Execute: fakecloudshell.Never, Status: http.StatusServiceUnavailable},
		"late":        {Execute: fakecloudshell.OnceGone, Reply: fakecloudshell.Dropped, Later: lateness},
		"slow":        {Hold: fakecloudshell.Pause{For: lateness}},
	}
}

func (o *options) addRule(text string) error {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return errors.New("it has three parts")
	}
	nth, err := strconv.ParseUint(parts[1], 10, 31)
	if err != nil {
		return fmt.Errorf("the second part: %w", err)
	}
	fault, known := faults()[parts[2]]
	if !known {
		return fmt.Errorf("there is no fault %q", parts[2])
	}
	method := fakecloudshell.Method(parts[0])
	if !slices.Contains(fakecloudshell.Methods(), method) {
		return fmt.Errorf("there is no method %q, only %v", method, fakecloudshell.Methods())
	}
	o.rules = append(o.rules, fakecloudshell.Rule{Method: method, Nth: int(nth), Fault: fault})
	return nil
}
