package pglock

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var (
	_ source.ManifestStore = (*Source)(nil)
)

// maxManifest is the largest manifest: it is sent at once.
const maxManifest = 64 << 20

// shelf is where the group's manifest is: a row, in one part.
type shelf struct{ *Source }

// Publish implements source.ManifestStore. It sends the manifest only where there seems to be none.
func (s *Source) Publish(ctx context.Context, manifest []byte) ([]byte, error) {
	return remote.ManifestLimits{Part: maxManifest, Most: maxManifest, Server: "PostgreSQL"}.Publish(ctx, shelf{s}, manifest)
}

// OpenManifest implements source.ManifestStore.
func (s *Source) OpenManifest(ctx context.Context) (io.ReadCloser, error) {
	return remote.OpenManifest(ctx, shelf{s})
}

func (s shelf) contents() statement {
	return s.sql(`SELECT id, sum FROM @list WHERE grp = $1`, s.group)
}

func contentsIn(found []row) *remote.Contents {
	if len(found) == 0 {
		return nil
	}
	sum, _ := hex.DecodeString(found[0].text(1)) // what is none is no manifest's
	return &remote.Contents{ID: found[0].text(0), Parts: 1, Sum: sum}
}

// Contents implements remote.Shelf.
func (s shelf) Contents(ctx context.Context, op string) (*remote.Contents, error) {
	found, err := s.ask(ctx, op, "", s.contents())
	return contentsIn(found), err
}

// Put implements remote.Shelf.
func (s shelf) Put(ctx context.Context, op string, mine remote.Contents, parts [][]byte) (*remote.Contents, error) {
	until := s.clock.after(s.timeout) // what comes later would bring a list back that was retracted
	answers, err := s.do(ctx, op, "", s.sql(`INSERT INTO @list (grp, id, sum, content) SELECT $1, $2, $3, $4::bytea
		WHERE `+micros+` < $5::bigint ON CONFLICT (grp) DO NOTHING`, s.group, mine.ID, hex.EncodeToString(mine.Sum), bytes.Join(parts, nil), until), s.contents())
	if err != nil {
		return nil, err
	}
	there := contentsIn(answers[1].rows)
	if there == nil {
		err = s.opError(ctx, op, "", remote.ErrRetracted)
	}
	return there, err
}

// Part implements remote.Shelf.
func (s shelf) Part(ctx context.Context, op string, of remote.Contents, _ int) ([]byte, error) {
	found, err := s.ask(ctx, op, "", s.sql(`SELECT encode(content, 'hex') FROM @list WHERE grp = $1 AND id = $2`, s.group, of.ID))
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, s.opError(ctx, op, "", remote.ErrRetracted)
	}
	return hex.DecodeString(found[0].text(0))
}

// Retract implements source.ManifestStore. It names the one that is there now: carried out late, it
// does not remove a later one.
func (s *Source) Retract(ctx context.Context) error {
	const op = "retract the list"
	there, err := shelf{s}.Contents(ctx, op)
	if there == nil {
		return err
	}
	_, err = s.do(ctx, op, "", s.sql(`DELETE FROM @list WHERE grp = $1 AND id = $2`, s.group, there.ID))
	return err
}
