package remote

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/multilock/go/multilock/source"
)

// Register is the register of a cooking lock: an entry whose version numbers the swaps. It
// remembers the last observation, so that a swap right after a look is one request. It is safe for
// concurrent use.
type Register struct {
	table *Table
	name  string

	mu   sync.Mutex
	seen Entry
	read bool
}

// Register implements source.Registrar.
func (t *Table) Register(name string) (source.Register, error) {
	return &Register{table: t, name: name}, t.CheckName(name)
}

// Registers implements source.Registrar.
func (t *Table) Registers(ctx context.Context) ([]string, error) {
	return t.names(ctx, "list the registers", registerKind)
}

var errReplaced = errors.New("the answer to the swap was lost, and others have swapped since: it was made before, or never")

func (r *Register) key() string { return r.table.key(registerKind, r.name) }

// look reads the register.
func (r *Register) look(ctx context.Context) (Entry, error) {
	e, err := r.table.get(ctx, "look at the register", r.name, r.key())
	if err != nil {
		return Entry{}, err
	}
	return r.saw(e), nil
}

// saw records an observation.
func (r *Register) saw(found *Entry) (now Entry) {
	if found != nil {
		now = Entry{Value: valueOf(found), Changed: found.Changed, Version: found.Version}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.read = now, true
	return now
}

// last returns the last observation.
func (r *Register) last(ctx context.Context) (Entry, error) {
	r.mu.Lock()
	seen, read := r.seen, r.read
	r.mu.Unlock()
	if read {
		return seen, nil
	}
	return r.look(ctx)
}

// Peek implements source.Register.
func (r *Register) Peek(ctx context.Context) (value []byte, n uint64, err error) {
	now, err := r.look(ctx)
	return now.Value, uint64(max(now.Version, 0)), err
}

// Swap implements source.Register. A request names the revision and the value that it replaces: so
// it takes effect once, however often it is carried out, and finding the new value proves that it
// did. The error wraps source.ErrUnsure if the swap may have taken effect, or may still do so.
func (r *Register) Swap(ctx context.Context, value []byte) (old []byte, n uint64, err error) {
	value = append([]byte{}, value...)
	before, err := r.last(ctx)
	for err == nil {
		unchanged := []Cond{{Key: r.key(), Field: IfAbsent}}
		if before.Changed > 0 {
			unchanged = []Cond{{Key: r.key(), Field: IfChanged, Number: before.Changed}, {Key: r.key(), Field: IfValue, Value: before.Value}}
		}
		a, failed := r.table.apply(ctx, "swap", r.name, Txn{If: unchanged, Then: []Write{{Key: r.key(), Value: value}}, Show: []Range{{Key: r.key()}}})
		var now Entry
		if err = failed; err == nil {
			now = r.saw(a.first(0))
		}
		switch {
		case err == nil && bytes.Equal(now.Value, value) && now.Version == before.Version+1:
			return before.Value, uint64(max(now.Version, 0)), nil
		case err == nil && a.Doubt:
			err = errors.Join(source.ErrUnsure, errReplaced)
		case a.Doubt:
			err = errors.Join(source.ErrUnsure, err)
		case err == nil:
			before, err = now, ctx.Err() // another process has swapped
		}
	}
	return nil, 0, err
}
