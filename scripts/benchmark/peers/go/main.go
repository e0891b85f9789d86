// Command gofrs is the gofrs/flock library as the benchmark measures it. It is a module of its own so that multilock
// does not depend on what it is compared with.
//
//	gofrs DIR
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/multilock/go/scripts/benchmark/worker"
)

func main() {
	if err := worker.Serve(kernel{flock.New(filepath.Join(os.Args[1], "lock"))}, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gofrs:", err)
		os.Exit(1)
	}
}

// kernel waits in the kernel's queue, which is the fastest that the library offers.
type kernel struct{ flock *flock.Flock }

func (k kernel) Acquire() error { return k.flock.Lock() }

func (k kernel) Release() error { return k.flock.Unlock() }
