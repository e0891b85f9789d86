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
	var e *editor
	for {
		theirs, err := bounded.Call(ctx, func(ctx context.Context) ([]byte, error) { return b.src.Publish(ctx, ours) })
		if err != nil {
			return err
		}
		var agreed bool
		switch {
		case b.opt.Replace || isWhole(theirs):
			if e == nil {
				e = newEditor(b)
			}
			agreed, err = e.replace(ctx)
		case b.opt.Add:
			agreed, err = b.add(ctx, len(ours))
		default:
			err = b.compare(ours, theirs, 0)
			if differs := (*ManifestError)(nil); b.grower == nil || !errors.As(err, &differs) || differs.Theirs != "" || differs.Line == 0 {
				return err
			}
			agreed, err = b.add(ctx, len(ours)) // ours is longer: the group may have been given the rest later
		}
		if err != nil || agreed {
			return err
		}
	}
}

// section encodes jobs from+1 to to, as a manifest or as a later section.
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
		return anotherVersion(theirHead)
	}
	return nil
}

func anotherVersion(head []byte) error {
	return &source.InvalidError{What: "list of jobs", Got: string(head), Why: "another version of multilock has divided it in another way; finish it with that version, or choose another group"}
}

// sectionsMore is how much longer than our list equal sections may be, because of their heads.
const sectionsMore = 64 << 10

// add compares the list with the group's sections and, with Options.Add, appends the rest. It returns false
// if another host changed the list in the meantime.
func (b *Batch) add(ctx context.Context, length int) (agreed bool, err error) {
	there, err := bounded.Call(ctx, func(ctx context.Context) ([][]byte, error) { return b.grower.Sections(ctx, length+sectionsMore) })
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // another host removed the list
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
		at, b.schedule.known = to, i+1
		b.sections = append(b.sections, at)
	}
	agreed = at == len(b.jobs)
	if !agreed && !b.opt.Add {
		return false, b.compare(b.section(at, len(b.jobs)), b.headOf(at, at), at)
	}
	if !agreed {
		agreed, err = bounded.Call(ctx, func(ctx context.Context) (bool, error) {
			return b.grower.Continue(ctx, there, b.section(at, len(b.jobs)))
		})
		b.schedule.known = len(there) + 1
	}
	if agreed {
		b.divide()
	}
	return agreed, err
}

// jobsIn counts the jobs of a section.
func jobsIn(section []byte) int {
	_, list := cutHead(section)
	return bytes.Count(bytes.TrimRight(list, "\n"), []byte{'\n'}) + min(len(list), 1)
}
