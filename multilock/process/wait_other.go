//go:build !linux

package process

import "context"

// await has nothing to sleep on: kqueue(2) and process handles would do, but
// need a thread or a poller of their own for each system.
func (id Identity) await(ctx context.Context, self Identity) error {
	return id.poll(ctx, self)
}
