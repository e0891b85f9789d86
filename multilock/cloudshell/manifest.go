package cloudshell

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/multilock/go/multilock/source"
)

// The manifest of a group is a register whose value has a digest: there is no room
// for a list of jobs. Hosts learn whether they mean the same list, and nothing else.

var _ source.ManifestStore = (*Source)(nil)

const keyDigest = "d"

// Publish implements source.ManifestStore. If the group has another manifest, the error
// is source.ErrInvalid: only a digest of it is kept.
func (s *Source) Publish(ctx context.Context, manifest []byte) ([]byte, error) {
	sum := sha256.Sum256(manifest)
	digest := hex.EncodeToString(sum[:])
	known, err := s.changeList(ctx, "publish the list of jobs", digest)
	switch {
	case err != nil:
		return nil, err
	case known != digest:
		return nil, &source.InvalidError{
			What: "list of jobs", Got: "SHA-256 " + digest[:16],
			Why: fmt.Sprintf("the group was given another list before (SHA-256 %.16s, only the digest is kept here); run that one, take another group, or remove the group's results and its list first", known),
		}
	}
	return manifest, nil
}

// Retract implements source.ManifestStore.
func (s *Source) Retract(ctx context.Context) error {
	_, err := s.changeList(ctx, "retract the list of jobs", "")
	return err
}

// changeList publishes a digest, unless one is there, or retracts that for "". It says
// which one is there then.
func (s *Source) changeList(ctx context.Context, op, digest string) (known string, err error) {
	if err := s.needOwners(ctx); err != nil {
		return "", err
	}
	ctx, base := context.WithoutCancel(ctx), s.prefix+listName
	for range stepTries {
		v, err := s.view(ctx, base)
		if err != nil {
			return "", opError(op, "", err)
		}
		if known, there := s.published(v.top()); there == (digest != "") {
			return known, nil
		}
		if err := s.stepList(ctx, base, v.top(), digest); !errors.Is(err, errTaken) {
			return digest, opError(op, "", err)
		}
	}
	return "", opError(op, "", errors.New("it does not hold still"))
}

// published is the digest that a register has; there is none after Retract, or if it
// came with a blueprint. What cannot be understood is somebody's list.
func (s *Source) published(top turn) (digest string, there bool) {
	if top.number == 0 || top.why == "" && (top.brand != s.brand || top.kind == kindFree) {
		return "", false
	}
	return top.fields[keyDigest], true
}

// stepList changes the register of the list.
func (s *Source) stepList(ctx context.Context, base string, from turn, digest string) error {
	kind := kindList
	if digest == "" {
		kind = kindFree
	}
	text := encodeValue(kind, []field{{keyNonce, newToken()}, {keyBrand, s.brand}, {keyDigest, digest}})
	v, err := s.advance(ctx, base, from.number, text)
	if err != nil {
		return err
	}
	for _, t := range v.turns {
		if t.number < v.top().number && t.why == "" {
			_ = s.remove(ctx, turnAlias(base, t.number))
		}
	}
	return nil
}
