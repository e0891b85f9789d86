//go:build !linux || !amd64

package etcdlab

import (
	"errors"
	"os"
	"time"
)

func stepClock(*os.Process, time.Duration) error {
	return errors.New("on this system the clock of a process cannot be stepped")
}
