package s3lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock/source"
)

// A store is tested before the first lock below a prefix is written, as a filesystem is. The result
// is an object, which later processes read.

var errUnfit = errors.New("the store does not keep its guarantees")

const (
	trialName = "trial/"
	passName  = "passed"
	// rounds is how often 16 writers contend in the first test, and longRounds in doctor's.
	rounds     = 3
	longRounds = 20
	// readers is how many read meanwhile.
	readers = 4
)

// copied is an object as it was read.
type copied struct{ etag, text string }

// ready tests the store once.
func (s *server) ready(ctx context.Context) error {
	_, err := s.tested.Learn(ctx, func() (passed bool, err error) {
		var text []byte
		_, err = s.repeat(ctx, 0, func(ctx context.Context) (err error) {
			text, _, err = s.text(ctx, passName)
			return err
		})
		if err != nil || string(text) == passName {
			return err == nil, err
		}
		if err := s.try(ctx, rounds); err != nil {
			return false, err
		}
		_, err = s.repeat(ctx, 0, func(ctx context.Context) error {
			_, err := s.write(ctx, passName, []byte(passName), always)
			return err
		})
		return err == nil, err
	})
	return err
}

// try tests what the locks depend on. Its error wraps errUnfit if the store fails.
func (s *server) try(ctx context.Context, rounds int) error {
	name := trialName + source.NewToken()
	defer func() { _ = s.remove(context.WithoutCancel(ctx), name) }()
	unfit := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s %s", errUnfit, s.at.endpoint, fmt.Sprintf(format, args...))
	}
	etag := ""
	for range rounds + 1 {
		before := etag
		won, text, reads, err := s.contend(ctx, name, etag)
		if err != nil {
			return err
		}
		if won > 1 {
			return unfit("let %d of %d writers replace one object at once, each on the condition that it was unchanged", won, width)
		}
		now, info, err := s.text(ctx, name)
		if err != nil {
			return err
		}
		if etag = info.etag; won == 1 && string(now) != text {
			return unfit("returned something else than what was written just before")
		}
		for read := range reads {
			// A new text with the old ETag does no harm: the write that relies on it fails.
			if read.etag == etag && read.text != string(now) {
				return unfit("returned an old object with the ETag of the one that replaced it")
			}
		}
		if won == 0 { // it was busy
			continue
		}
		for _, wrong := range slices.Compact([]string{"", before, "00000000000000000000000000000000"}) {
			if wrong == etag {
				continue
			}
			if _, err := s.write(ctx, name, []byte("wrong"), wrong); err == nil {
				return unfit("ignores the condition of a write (If-None-Match or If-Match)")
			} else if !isConflict(err) {
				return err
			}
		}
		all, err := s.list(ctx, name, "", 0)
		if err != nil {
			return err
		}
		if len(all) != 1 || all[0].name != name || all[0].size != int64(len(now)) {
			return unfit("does not list an object as it was written just before")
		}
	}
	return nil
}

// contend lets several writers replace an object, and returns how many succeeded, what one of them
// has written, and what was read meanwhile. The texts are unique, because an ETag may be a digest.
func (s *server) contend(ctx context.Context, name, etag string) (won int, text string, reads map[copied]bool, err error) {
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		written atomic.Bool
	)
	reads = map[copied]bool{}
	for range readers {
		group.Go(func() {
			for !written.Load() {
				text, info, err := s.text(ctx, name)
				if err != nil {
					return
				}
				mu.Lock()
				reads[copied{info.etag, string(text)}] = true
				mu.Unlock()
			}
		})
	}
	texts, wrote := make([]string, width), make([]bool, width)
	err = parallel.Do(width, width, func(i int) error {
		texts[i] = source.NewToken()
		_, err := s.write(ctx, name, []byte(texts[i]), etag)
		if wrote[i] = err == nil; wrote[i] || isConflict(err) || passes(err) {
			return nil
		}
		return err
	})
	written.Store(true)
	group.Wait()
	for i := range wrote {
		if wrote[i] {
			won++
			text = texts[i]
		}
	}
	return won, text, reads, err
}
