// Command fakecloudshell serves a fake CloudShell on the loopback interface, to
// try a client by hand. It prints its URL and ends on SIGINT or SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/multilock/go/integration/fakecloudshell"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fakecloudshell:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if opt.verbose {
		opt.server.Log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	server, err := fakecloudshell.New(opt.server)
	if err != nil {
		return err
	}
	defer server.Close()
	server.Inject(fakecloudshell.Rules(opt.rules...))
	if err := announce(server, opt, stdout); err != nil {
		return err
	}
	<-ctx.Done()
	return server.Close()
}

// announce prints where the server is, once it can be reached.
func announce(server *fakecloudshell.Server, opt options, stdout io.Writer) error {
	if opt.ca != "" {
		if err := server.WriteCA(opt.ca); err != nil {
			return err
		}
	}
	fmt.Fprintln(stdout, server.URL())
	if opt.command == "" {
		return nil
	}
	command, err := server.RunCommand(opt.command)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "adminAuthToken", command.Token())
	return nil
}
