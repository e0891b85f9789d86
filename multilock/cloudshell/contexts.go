package cloudshell

import (
	"encoding/json"
	"net"
	"strings"
)

// connectivity is what CloudShell tells the scripts that it runs about itself. Its
// tsAPIPort is another API's, and is not read.
type connectivity struct {
	Server   string `json:"serverAddress"`
	Scheme   string `json:"tsAPIScheme"`
	User     string `json:"adminUser"`
	Password string `json:"adminPass"`
	Token    string `json:"adminAuthToken"`
}

// reservationContext is about the reservation that the script runs in.
type reservationContext struct {
	ID     string `json:"id"`
	Domain string `json:"domain"`
}

// lifecycle is what scripts of setup and teardown get.
type lifecycle struct {
	Reservation string `json:"reservationId"`
}

// fromContexts fills in what the options leave out.
func fromContexts(opt Options, environ []string) (Options, error) {
	var server connectivity
	var here reservationContext
	var cycle lifecycle
	for name, target := range map[string]any{
		"QUALICONNECTIVITYCONTEXT": &server, "RESERVATIONCONTEXT": &here, "RESERVATIONLIFECYCLECONTEXT": &cycle,
	} {
		if err := readContext(environ, name, target); err != nil {
			return opt, err
		}
	}
	if server.Server == "" || opt.Server != "" && hostOf(opt.Server) != hostOf(server.Server) {
		return opt, nil // its token is nothing for another server
	}
	if opt.User == "" && opt.Token.IsZero() {
		opt.Token, opt.User = NewSecret(server.Token), server.User
		if opt.Password.IsZero() {
			opt.Password = NewSecret(server.Password)
		}
	}
	for _, f := range []struct {
		option *string
		found  string
	}{
		{&opt.Server, server.Server}, {&opt.Scheme, strings.ToLower(server.Scheme)}, {&opt.Reservation, here.ID}, {&opt.Reservation, cycle.Reservation}, {&opt.Domain, here.Domain},
	} {
		if *f.option == "" {
			*f.option = f.found
		}
	}
	return opt, nil
}

// readContext finds a variable, in whatever case its name is written.
func readContext(environ []string, name string, target any) error {
	for _, entry := range environ {
		key, text, _ := strings.Cut(entry, "=")
		if !strings.EqualFold(key, name) || text == "" {
			continue
		}
		if json.Unmarshal([]byte(text), target) == nil {
			return nil
		}
		// A domain before a user's name is written with a lone backslash.
		if json.Unmarshal([]byte(strings.ReplaceAll(text, `\`, `\\`)), target) != nil {
			return invalid("environment variable", key, "is not the JSON that CloudShell gives to scripts")
		}
		return nil
	}
	return nil
}

func hostOf(server string) string {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		host = server
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}
