//go:build linux

package soak_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Where the share is: on the server's own disk, and on the hosts.
const (
	serverShare = "/export"
	hostShare   = "/shared"
)

// labLimit is how long one of the lab's tools may take, a boot included.
const labLimit = 5 * time.Minute

// lab runs one of the lab's tools.
func lab(ctx context.Context, command string) error {
	ctx, cancel := context.WithTimeout(ctx, labLimit)
	defer cancel()
	words := strings.Fields(command)
	said, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, said)
	}
	return nil
}

// startHosts brings up h1 (NFSv4.2), h2 (v4.1) and h3 (v3), unless they are there.
func startHosts(ctx context.Context) ([]*host, error) {
	present, err := exec.CommandContext(ctx, "host", "list").Output()
	if err != nil {
		return nil, fmt.Errorf("host list: %w", err)
	}
	if len(present) == 0 {
		if err := lab(ctx, "host defaults"); err != nil {
			return nil, err
		}
	}
	var hosts []*host
	for _, name := range []string{"h1", "h2", "h3"} {
		// Only what is started on a host with a clock of its own can be made to see a wrong one.
		if err := lab(ctx, "host clock "+name+" 0"); err != nil {
			return nil, err
		}
		h := &host{name: name}
		h.boot()
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// host is what the driver knows of one host: whether it is up.
type host struct {
	name string

	mu    sync.Mutex
	up    chan struct{} // closed while it is up
	boots int
}

func (h *host) boot() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.boots++
	if h.up == nil {
		h.up = make(chan struct{})
	}
	close(h.up)
}

func (h *host) crash() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.up = make(chan struct{})
}

// awaitUp waits until the host is up, and tells which boot of it that is.
func (h *host) awaitUp(ctx context.Context) (boot int, err error) {
	h.mu.Lock()
	up := h.up
	h.mu.Unlock()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-up:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.boots, nil
}

// stillUp says whether the host has not crashed since that boot.
func (h *host) stillUp(boot int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.up:
		return h.boots == boot
	default:
		return false
	}
}
