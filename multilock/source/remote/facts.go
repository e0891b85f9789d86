package remote

import "context"

// Facts are the properties of a server. They are requested once, before the first other request, by
// one goroutine at a time.
type Facts[F any] struct {
	asking chan struct{} // a mutex: holds a token while unlocked
	facts  F
	known  bool
}

// NewFacts returns Facts that are not known yet.
func NewFacts[F any]() *Facts[F] {
	f := &Facts[F]{asking: make(chan struct{}, 1)}
	f.asking <- struct{}{}
	return f
}

// Learn requests the facts if they are not known, and then calls more with them.
func (f *Facts[F]) Learn(ctx context.Context, ask func() (F, error), more ...func(*F) error) (F, error) {
	var none F
	select {
	case <-f.asking:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	defer func() { f.asking <- struct{}{} }()
	if !f.known {
		found, err := ask()
		if err != nil {
			return none, err
		}
		f.facts, f.known = found, true
	}
	for _, do := range more {
		if err := do(&f.facts); err != nil {
			return f.facts, err
		}
	}
	return f.facts, nil
}
