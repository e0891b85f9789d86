package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"

	"github.com/multilock/go/multilock/source"
)

// Contents name the parts of a manifest that is more than a request may have. Who publishes one
// writes his own parts first, and then, in one step, the contents.
type Contents struct {
	Version int    `json:"v"`
	ID      string `json:"id"` // of its parts
	Parts   int    `json:"parts"`
	Sum     []byte `json:"sha256"`
}

// Cut gives a manifest in parts of a size, and what names them.
func Cut(manifest []byte, size int) (Contents, [][]byte) {
	parts, sum := slices.Collect(slices.Chunk(manifest, size)), sha256.Sum256(manifest)
	return Contents{Version: 1, ID: source.NewToken(), Parts: len(parts), Sum: sum[:]}, parts
}

// Encode gives the contents as JSON.
func (c Contents) Encode() string {
	text, _ := json.Marshal(c) // of texts and numbers, which cannot fail
	return string(text)
}

// DecodeContents reads what Encode wrote. The error says that it did not, or that there are more
// parts than can be.
func DecodeContents(text []byte, most int) (Contents, error) {
	var c Contents
	if json.Unmarshal(text, &c) != nil || c.Version != 1 || c.Parts < 0 || c.Parts > most {
		return Contents{}, errors.New("it is not a manifest of this multilock")
	}
	return c, nil
}

// Same says whether two manifests are the same.
func (c Contents) Same(other Contents) bool { return bytes.Equal(c.Sum, other.Sum) }

// Join puts the parts together. The error is read's, or ErrOtherParts.
func (c Contents) Join(read func(part int) ([]byte, error)) ([]byte, error) {
	var manifest []byte
	for n := range c.Parts {
		part, err := read(n)
		if err != nil {
			return nil, err
		}
		manifest = append(manifest, part...)
	}
	if sum := sha256.Sum256(manifest); !bytes.Equal(sum[:], c.Sum) {
		return nil, ErrOtherParts
	}
	return manifest, nil
}

// ErrOtherParts says that the parts are not those of the manifest that was published.
var ErrOtherParts = errors.New("it is not what was published")
