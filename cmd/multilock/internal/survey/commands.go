package survey

import (
	"context"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/redact"
	"github.com/multilock/go/multilock/source"
)

// Commands are commands to look up: a chunk's jobs have theirs only in the group's list.
type Commands map[string]*string

// Want requests the commands of a chunk's jobs, unless a label replaces them.
func (c Commands) Want(chunk *source.Chunk) {
	if chunk == nil || chunk.Label != "" {
		return
	}
	for i := range chunk.Jobs {
		c[chunk.Jobs[i].Name] = &chunk.Jobs[i].Command
	}
}

// Read fills in the commands from the group's list, with secrets redacted. If the list cannot be
// read, they stay empty.
func (c Commands) Read(ctx context.Context, src source.Ledger) {
	manifests, ok := src.(source.ManifestStore)
	if !ok || len(c) == 0 {
		return
	}
	_ = joblist.Each(ctx, manifests, func(j joblist.Job) bool {
		if command := c[j.Name()]; command != nil {
			*command = redact.Line(j.Command())
			delete(c, j.Name())
		}
		return len(c) > 0
	})
}
