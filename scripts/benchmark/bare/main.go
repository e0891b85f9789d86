// Command bare makes the system calls of multilock's protocol and nothing else: no keeper, no checks, no waiting.
// What multilock itself needs more than this is what its guarantees cost.
//
//	bare [-fsync] DIR
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/multilock/go/scripts/benchmark/worker"
)

func main() {
	fsync := flag.Bool("fsync", false, "flush the record to the disk before it is published")
	flag.Parse()
	if err := run(flag.Arg(0), *fsync); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(base string, fsync bool) error {
	calls, err := open(base)
	if err != nil {
		return err
	}
	if fsync {
		return worker.Serve(flushing{calls}, os.Stdin, os.Stdout)
	}
	return worker.Serve(calls, os.Stdin, os.Stdout)
}
