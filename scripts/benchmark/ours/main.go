// Command ours is multilock as the benchmark measures it: the library, on a shared filesystem, with default options.
//
//	ours DIR
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/scripts/benchmark/worker"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "ours:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	source, err := fslock.Open(fslock.Options{Base: dir, Group: "bench"})
	if err != nil {
		return err
	}
	defer source.Close()                                                  //nolint:errcheck // it only closes descriptors
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // every program has a context that can end
	defer stop()
	return worker.Serve(&named{ctx: ctx, source: source}, os.Stdin, os.Stdout)
}

// named is the lock of one name in a source.
type named struct {
	ctx    context.Context //nolint:containedctx // the program's
	source *fslock.Source
	held   *multilock.Lock
}

func (n *named) Acquire() error {
	held, err := multilock.Acquire(n.ctx, n.source, "bench", multilock.Options{})
	n.held = held
	return err
}

func (n *named) Release() error {
	return n.held.Release(n.ctx)
}
