package batch

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
)

// agree publishes the list, or finds that another one was.
func (b *Batch) agree(ctx context.Context) error {
	ours := b.section(0, len(b.jobs))
	for {
		theirs, err := bounded.Call(ctx, func(ctx context.Context) ([]byte, error) { return b.src.Publish(ctx, ours) })
		switch {
		case err != nil:
			return err
		case !b.opt.Add:
			return b.compare(ours, theirs, 0, len(b.jobs))
		}
		if agreed, err := b.add(ctx, len(ours)); err != nil || agreed {
			return err
		}
	}
}

// section is what a manifest, or a section of one, says of the jobs behind one number up to
// another.
func (b *Batch) section(from, to int) []byte {
	return encodeManifest(b.headOf(b.chunks != nil, from, to), b.jobs[from:to])
}

func (b *Batch) headOf(chunked bool, from, to int) []byte {
	barriers := slices.DeleteFunc(slices.Clone(b.opt.Barriers), func(after int) bool { return after < from || after >= to })
	needs := slices.DeleteFunc(slices.Clone(b.opt.Needs), func(n Needs) bool { return n.From <= from || n.From > to })
	return headOf(chunked, barriers, needs, b.opt.Shell)
}

// compare finds out whether what others say of these jobs is what is said here. A list that was
// published without chunks is worked through without them.
func (b *Batch) compare(ours, theirs []byte, from, to int) error {
	head, ours := cutHead(ours)
	theirHead, theirs := cutHead(theirs)
	if err := compareManifests(ours, theirs, from); err != nil {
		return err
	}
	ourRules, theirRules := rulesIn(head), rulesIn(theirHead)
	switch {
	case bytes.Equal(head, theirHead):
	case ourRules != theirRules:
		return &ManifestError{Ours: ourRules, Theirs: theirRules}
	case from == 0 && bytes.Equal(theirHead, b.headOf(false, from, to)):
		b.chunks = nil
		b.divide()
	default:
		return &source.InvalidError{What: "list of jobs", Got: string(theirHead), Why: "another version of multilock has divided it into chunks; go on with that one"}
	}
	return nil
}

// sectionsMore is how much longer than our list all sections together may be that say the same:
// each has a head.
const sectionsMore = 64 << 10

// add compares the list with the group's and all that continues it, and adds what is left of
// it. It is false if others have changed that meanwhile.
func (b *Batch) add(ctx context.Context, length int) (agreed bool, err error) {
	there, err := bounded.Call(ctx, func(ctx context.Context) ([][]byte, error) { return b.grower.Sections(ctx, length+sectionsMore) })
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // it was retracted
	}
	if err != nil {
		return false, err
	}
	b.sections = nil
	at := 0
	for i := 0; i < len(there) && at < len(b.jobs); i++ {
		to := min(at+jobsIn(there[i]), len(b.jobs))
		if err := b.compare(b.section(at, to), there[i], at, to); err != nil {
			return false, err
		}
		at = to
		b.sections = append(b.sections, at)
	}
	if agreed = at == len(b.jobs); !agreed {
		agreed, err = bounded.Call(ctx, func(ctx context.Context) (bool, error) {
			return b.grower.Continue(ctx, there, b.section(at, len(b.jobs)))
		})
	}
	if agreed {
		b.divide()
	}
	return agreed, err
}

// jobsIn is how many jobs a section of a manifest tells of.
func jobsIn(section []byte) int {
	_, list := cutHead(section)
	return len(bytes.Split(bytes.TrimRight(list, "\n"), []byte{'\n'}))
}
