// Command mongolab serves MongoDB on the loopback interface, for trying things by
// hand: a FerretDB in this process, behind the proxy that makes its updates atomic.
// It says its URI, and ends at SIGTERM or Ctrl-C.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/multilock/go/integration/mongolab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mongolab:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("mongolab", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:27017", "address and port; port 0 is any free one")
	dir := flags.String("dir", "", "directory for the data, which stays; without it a temporary one, which does not")
	replicaSet := flags.Bool("replica-set", false, "say that this is the primary of a replica set")
	latency := flags.Duration("latency", 0, "how long each command is under way, as with a server that is far")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		temporary, err := os.MkdirTemp("", "mongolab")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		*dir = temporary
	}
	server, err := mongolab.Open(mongolab.Options{Listen: *listen, Dir: *dir, ReplicaSet: *replicaSet, Latency: *latency})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, server.URI())
	<-ctx.Done()
	return server.Close()
}
