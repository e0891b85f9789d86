package remote

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/multilock/go/multilock/source"
)

// Register makes a set-and-get of a compare-and-set: the register of a cooking lock. It remembers
// what it saw last, so that a swap right after a look is one request. It is safe for concurrent use.
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

func (r *Register) where() Range { return Range{Key: r.table.key(registerKind, r.name)} }

// Peek implements source.Register.
func (r *Register) Peek(ctx context.Context) (value []byte, n uint64, err error) {
	a, err := r.table.show(ctx, "look at the register", r.name, r.where())
	if err != nil {
		return nil, 0, err
	}
	now := r.saw(a.first(0))
	return now.Value, now.number(), nil
}

// Swap implements source.Register. It names what it replaces, revision and value: so it is made once,
// however often it comes to be carried out, and a value that is there is proof that it was. The error
// wraps source.ErrUnsure if it may have been made, or may still be.
func (r *Register) Swap(ctx context.Context, value []byte) (old []byte, n uint64, err error) {
	value = append([]byte{}, value...)
	before, err := r.last(ctx)
	for err == nil {
		var a Applied
		a, err = r.table.apply(ctx, "swap", r.name, r.replace(before, value))
		if err != nil {
			if a.Doubt {
				err = errors.Join(source.ErrUnsure, err)
			}
			break
		}
		now := r.saw(a.first(0))
		switch {
		case bytes.Equal(now.Value, value) && now.Version == before.Version+1:
			return before.Value, now.number(), nil
		case a.Doubt:
			err = errors.Join(source.ErrUnsure, errReplaced)
		default:
			before, err = now, ctx.Err() // somebody else has swapped
		}
	}
	return nil, 0, err
}

// replace puts a value where exactly the one before still stands.
func (r *Register) replace(before Entry, value []byte) Txn {
	key := r.where().Key
	unchanged := []Cond{{Key: key, Field: IfAbsent}}
	if before.Changed > 0 {
		unchanged = []Cond{{Key: key, Field: IfChanged, Number: before.Changed}, {Key: key, Field: IfValue, Value: before.Value}}
	}
	return Txn{If: unchanged, Then: []Write{{Key: key, Value: value}}, Show: []Range{r.where()}}
}

// number is that of the swap that wrote an entry.
func (e Entry) number() uint64 { return uint64(max(e.Version, 0)) } //nolint:gosec // not negative

// saw remembers what was seen last.
func (r *Register) saw(found *Entry) (now Entry) {
	if found != nil {
		now = Entry{Value: valueOf(found), Changed: found.Changed, Version: found.Version}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.read = now, true
	return now
}

// last is what was seen last.
func (r *Register) last(ctx context.Context) (Entry, error) {
	r.mu.Lock()
	seen, read := r.seen, r.read
	r.mu.Unlock()
	if read {
		return seen, nil
	}
	a, err := r.table.show(ctx, "look at the register", r.name, r.where())
	if err != nil {
		return Entry{}, err
	}
	return r.saw(a.first(0)), nil
}
