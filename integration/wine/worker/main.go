// Command worker is what the tests under Wine run as a job.
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
	case "print": // each argument on a line of its own
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
	case "polite": // ends when it is asked to
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, os.Interrupt)
		beat(rest[0], asked)
		fmt.Println("asked")
		os.Exit(7)
	case "stubborn":
		signal.Ignore(os.Interrupt)
		beat(rest[0], nil)
	case "parent": // has a child in a console process group of its own
		startChild(rest[0])
		beat(rest[0]+".parent", nil)
	case "leave": // leaves it behind
		startChild(rest[0])
		os.Exit(3)
	}
}

// beat adds to a file, so that others see that somebody lives.
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
