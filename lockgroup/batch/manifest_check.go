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

// agree publishes the list, or compares it with the group's list.
func (b *Batch) agree(ctx context.Context) error {
	ours := b.section(0, len(b.jobs))
	for {
		theirs, err := bounded.Call(ctx, func(ctx context.Context) ([]byte, error) { return b.src.Publish(ctx, ours) })
		switch {
		case err != nil:
			return err
		case !b.opt.Add:
			return b.compare(ours, theirs, 0)
		}
		if agreed, err := b.add(ctx, len(ours)); err != nil || agreed {
			return err
		}
	}
}

// section encodes jobs from+1 to to, as a manifest or a later section of one.
func (b *Batch) section(from, to int) []byte {
	return encodeManifest(b.headOf(from, to), b.jobs[from:to])
}

func (b *Batch) headOf(from, to int) []byte {
	barriers := slices.DeleteFunc(slices.Clone(b.opt.Barriers), func(after int) bool { return after < from || after >= to })
	needs := slices.DeleteFunc(slices.Clone(b.opt.Needs), func(n Needs) bool { return n.From <= from || n.From > to })
	return headOf(barriers, needs, b.opt.Shell)
}

// compare checks that the group's list has the same jobs and rules.
func (b *Batch) compare(ours, theirs []byte, from int) error {
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
	default:
		return &source.InvalidError{What: "list of jobs", Got: string(theirHead), Why: "another version of multilock has divided it in another way; finish it with that version, or choose another group"}
	}
	return nil
}

// sectionsMore is how much longer than our list equal sections may be, because of their heads.
const sectionsMore = 64 << 10

// add compares the list with the group's sections and appends the rest. It returns false if another
// host changed the list meanwhile.
func (b *Batch) add(ctx context.Context, length int) (agreed bool, err error) {
	there, err := bounded.Call(ctx, func(ctx context.Context) ([][]byte, error) { return b.grower.Sections(ctx, length+sectionsMore) })
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // another host retracted it
	}
	if err != nil {
		return false, err
	}
	b.sections = nil
	at := 0
	for i := 0; i < len(there) && at < len(b.jobs); i++ {
		to := min(at+jobsIn(there[i]), len(b.jobs))
		if err := b.compare(b.section(at, to), there[i], at); err != nil {
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

// jobsIn counts the jobs of a section.
func jobsIn(section []byte) int {
	_, list := cutHead(section)
	return len(bytes.Split(bytes.TrimRight(list, "\n"), []byte{'\n'}))
}
