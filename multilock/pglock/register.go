package pglock

import (
	"context"
	"encoding/hex"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var _ source.Registrar = (*Source)(nil)

// Register implements source.Registrar.
func (s *Source) Register(name string) (source.Register, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	return remote.NewRegister(cell{s, name}), nil
}

// Registers implements source.Registrar.
func (s *Source) Registers(ctx context.Context) ([]string, error) {
	return s.list(ctx, "list the registers", `SELECT name FROM @register WHERE grp = $1 ORDER BY name`)
}

// cell is the row of a register.
type cell struct {
	*Source
	name string
}

// Replace implements remote.Cell: one statement finds the row as it was and writes it, or inserts it.
func (c cell) Replace(ctx context.Context, this remote.Content, value []byte) (now remote.Content, doubt bool, err error) {
	swap := c.sql(`INSERT INTO @register (grp, name, value, number) VALUES ($1, $2, $3::bytea, 1) ON CONFLICT (grp, name) DO NOTHING`, c.group, c.name, value)
	if this.Number > 0 {
		swap = c.sql(`UPDATE @register SET value = $3::bytea, number = number + 1, at = clock_timestamp() WHERE grp = $1 AND name = $2 AND number = $4::bigint AND value = $5::bytea`,
			c.group, c.name, value, int64(this.Number), this.Value) //nolint:gosec // it was a bigint
	}
	answers, doubt, err := c.repeat(ctx, c.timeout, swap, c.look())
	if err != nil {
		return now, doubt, c.opError(ctx, "swap", c.name, err)
	}
	now, err = content(answers[1].rows)
	return now, doubt, err
}

// Read implements remote.Cell.
func (c cell) Read(ctx context.Context) (remote.Content, error) {
	rows, err := c.ask(ctx, "look at the register", c.name, c.look())
	if err != nil {
		return remote.Content{}, err
	}
	return content(rows)
}

func (c cell) look() statement {
	return c.sql(`SELECT encode(value, 'hex'), number FROM @register WHERE grp = $1 AND name = $2`, c.group, c.name)
}

func content(rows []row) (now remote.Content, err error) {
	if len(rows) == 0 {
		return now, nil
	}
	now.Number = uint64(rows[0].number(1)) //nolint:gosec // the table has it positive
	now.Value, err = hex.DecodeString(rows[0].text(0))
	return now, err
}
