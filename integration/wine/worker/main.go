// Command worker is the program that the tests under Wine run as a job.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"time"
)

func main() {
	switch what, rest := os.Args[1], os.Args[2:]; what {
	case "exit":
		code, err := strconv.Atoi(rest[0])
		check(err)
		os.Exit(code)
	case "print": // one argument per line
		for _, arg := range rest {
			fmt.Println(arg)
		}
	case "env":
		fmt.Println(os.Getenv(rest[0]))
	case "sleep":
		d, err := time.ParseDuration(rest[0])
		check(err)
		time.Sleep(d)
	case "beat":
		beat(rest[0], nil)
	case "polite": // exits when it is interrupted
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, os.Interrupt)
		beat(rest[0], asked)
		fmt.Println("asked")
		os.Exit(7)
	case "stubborn":
		signal.Ignore(os.Interrupt)
		beat(rest[0], nil)
	case "parent": // has a child in another console process group
		startChild(rest[0])
		beat(rest[0]+".parent", nil)
	case "leave": // exits before its child
		startChild(rest[0])
		os.Exit(3)
	}
}

// beat appends to a file, so that tests see that the process is running.
func beat(path string, until <-chan os.Signal) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	check(err)
	for {
		_, err := f.WriteString(".")
		check(err)
		select {
		case <-until:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func startChild(path string) {
	self, err := os.Executable()
	check(err)
	child := exec.Command(self, "stubborn", path)
	child.SysProcAttr = apart()
	check(child.Start())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}
