package pglock

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var (
	_ source.ManifestStore  = (*Source)(nil)
	_ source.ManifestReader = (*Source)(nil)
)

// maxManifest is the largest manifest: it is sent at once.
const maxManifest = 64 << 20

// Publish implements source.ManifestStore. It sends the manifest only where there seems to be none.
func (s *Source) Publish(ctx context.Context, manifest []byte) ([]byte, error) {
	if len(manifest) > maxManifest {
		return nil, &source.InvalidError{What: "list", Got: fmt.Sprintf("%d bytes", len(manifest)), Why: fmt.Sprintf("at most %d are kept in PostgreSQL; cut it into several, each in a group of its own (-g)", maxManifest)}
	}
	hash := sha256.Sum256(manifest)
	sum := hex.EncodeToString(hash[:])
	found := s.sql(`SELECT sum = $2, CASE WHEN sum <> $2 THEN encode(content, 'hex') END FROM @list WHERE grp = $1`, s.group, sum)
	rows, err := s.ask(ctx, "publish the list", "", found)
	if err == nil && len(rows) == 0 {
		until := s.clock.after(s.timeout) // what comes later would bring a list back that was retracted
		var answers []answer
		answers, err = s.do(ctx, "publish the list", "", s.sql(`INSERT INTO @list (grp, id, sum, content) SELECT $1, $2, $3, $4::bytea
			WHERE `+micros+` < $5::bigint ON CONFLICT (grp) DO NOTHING`, s.group, source.NewToken(), sum, manifest, until), found)
		if err == nil {
			rows = answers[1].rows
		}
	}
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, s.opError(ctx, "publish the list", "", remote.ErrAgain)
	case rows[0].is(0):
		return manifest, nil
	}
	return hex.DecodeString(rows[0].text(1))
}

// OpenManifest implements source.ManifestReader.
func (s *Source) OpenManifest(ctx context.Context) (io.ReadCloser, error) {
	texts, err := s.list(ctx, "read the list", `SELECT encode(content, 'hex') FROM @list WHERE grp = $1`)
	if err != nil {
		return nil, err
	}
	if len(texts) == 0 {
		return nil, fs.ErrNotExist
	}
	content, err := hex.DecodeString(texts[0])
	return io.NopCloser(bytes.NewReader(content)), err
}

// Retract implements source.ManifestStore. It names the one that is there now: carried out late, it
// does not remove a later one.
func (s *Source) Retract(ctx context.Context) error {
	ids, err := s.list(ctx, "retract the list", `SELECT id FROM @list WHERE grp = $1`)
	if err != nil || len(ids) == 0 {
		return err
	}
	_, err = s.do(ctx, "retract the list", "", s.sql(`DELETE FROM @list WHERE grp = $1 AND id = $2`, s.group, ids[0]))
	return err
}
