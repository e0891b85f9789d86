package s3lock

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// shortest is the first pause after a conflict.
const shortest = 5 * time.Millisecond

func jitter(pause time.Duration) time.Duration { return pause/2 + rand.N(pause) } //nolint:gosec // jitter needs no secrecy

// below reads the entries below a key. Those of locks and results are found by the sizes of their
// objects, and have no values.
func (c *change) below(ctx context.Context, r remote.Range) (entries []remote.Entry, err error) {
	before, kind, rest := cut(r.Key)
	objects, after, most := escape(r.Key), "", 0
	switch kind {
	case "wait", "broke", "life":
		return nil, nil
	case "result", "changes":
		objects = escape(before + "lock/" + rest)
	}
	if kind == "history" && r.Before == 0 { // the order of names
		most = r.Limit
	}
	if n := len(r.From) - 1; r.From > r.Key { // a name before it, with none in between
		if after = escape(r.From[:n]); r.From[n] > ' ' {
			after += string(r.From[n]-1) + "z"
		}
	}
	id := fmt.Sprint(objects, " ", after, " ", most)
	all, known := c.listed[id]
	if !known {
		if all, err = c.list(ctx, objects, after, most); err != nil {
			return nil, err
		}
		c.listed[id] = all
	}
	if kind == "changes" {
		return changes(r.Key, all), nil
	}
	for _, o := range all {
		key, ok := unescape(o.name)
		if kind == "result" {
			key = strings.Replace(key, "lock/", "result/", 1)
		}
		at := o.written.UnixMicro()
		if !ok || !o.has(fieldOf(key).name) || key < r.From || r.Before > 0 && at >= r.Before {
			continue
		}
		entries = append(entries, remote.Entry{Key: key, Created: at, Changed: at, Version: 1, Age: source.Unknown, Silence: source.Unknown})
	}
	slices.SortFunc(entries, func(a, b remote.Entry) int {
		switch {
		case r.Oldest:
			return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Key, b.Key))
		case r.Newest:
			return cmp.Or(cmp.Compare(b.Created, a.Created), strings.Compare(b.Key, a.Key))
		}
		return strings.Compare(a.Key, b.Key)
	})
	if r.Limit > 0 {
		entries = entries[:min(len(entries), r.Limit)]
	}
	if r.Keys {
		return entries, nil
	}
	return c.values(ctx, entries)
}

// has reports whether a listed object has a field: see sizes. Other objects exist, or do not.
func (o listed) has(name string) bool {
	switch name {
	case resultField:
		return o.size%sizes&resultBit != 0
	case "":
		return true
	}
	return o.size%sizes&heldBit != 0
}

// changes returns an entry for each group that has had a result. Its revision is a digest of how often
// each result was changed.
func changes(key string, all []listed) (entries []remote.Entry) {
	sums := map[string]int64{}
	for _, o := range all {
		name, ok := unescape(o.name)
		before, _, rest := cut(name)
		group, _, _ := strings.Cut(rest, "/")
		if !ok || o.size%sizes&^heldBit == 0 { // it has never had a result
			continue
		}
		group = before + "changes/" + group + "/"
		sum := fnv.New64a()
		_, _ = sum.Write([]byte{byte(o.size % sizes / resultsAt)})
		_, _ = sum.Write([]byte(name))
		sums[group] += int64(sum.Sum64() >> 1) //nolint:gosec // any number will do
	}
	for group, sum := range sums {
		if strings.HasPrefix(group, key) {
			entries = append(entries, remote.Entry{Key: group, Created: 1, Changed: sum, Version: 1})
		}
	}
	return entries
}

// values reads the values of entries that were listed, and leaves out those that were removed since.
func (s *server) values(ctx context.Context, entries []remote.Entry) ([]remote.Entry, error) {
	err := parallel.Do(width, len(entries), func(i int) error {
		e := &entries[i]
		found, err := s.whole(ctx, e.Key)
		e.Value = nil
		if err == nil && len(found) > 0 {
			e.Value, e.Silence = found[0].Value, found[0].Silence
		}
		return err
	})
	return slices.DeleteFunc(entries, func(e remote.Entry) bool { return e.Value == nil }), err
}
