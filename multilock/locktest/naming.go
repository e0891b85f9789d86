package locktest

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// oddNames are names that every source must keep apart: names are arbitrary bytes.
func oddNames() []string {
	return []string{
		"with spaces", "two  spaces", "dots..in.it", ".hidden", "...", "-leading-dash", "--force",
		"Straße ☃ 漢字", "e\u0301", "\u00e9", "100%", "a&b<c>'d\"e", `back\slash`, "$HOME", "*", "~", "nightly.locked",
		"UPPER", "upper", strings.Repeat("x", 200),
	}
}

// odd returns the names to try with this source.
func (f Fixture) odd() []string {
	names := slices.DeleteFunc(append(oddNames(), f.Odd...), func(name string) bool { return slices.Contains(f.Impossible, name) })
	if f.Distant {
		return names[len(names)-3:]
	}
	return names
}

func testOddNames(p *place) {
	b := p.open()
	for name, lock := range p.holdOdd(b) {
		p.release(lock)
		p.requireFree(b, name)
	}
	p.requireNames(b)
}

// holdOdd holds locks of all odd names, and checks how a source shows them.
func (p *place) holdOdd(shown source.Source) map[string]*multilock.Lock {
	p.Helper()
	src, names, held := p.open(), p.fixture.odd(), map[string]*multilock.Lock{}
	for _, name := range names {
		held[name] = p.try(src, name, multilock.Options{})
	}
	slices.Sort(names)
	p.requireNames(shown, names...)
	for name, lock := range held {
		p.requireHeld(shown, name, lock.Record().Token)
	}
	return held
}

func testRefusedNames(p *place) {
	src := p.open()
	for _, name := range append([]string{""}, p.fixture.Refused...) {
		_, err := multilock.TryAcquire(p.ctx, src, name, multilock.Options{})
		require.ErrorIs(p, err, source.ErrInvalid, "%q", name)
		_, err = multilock.Inspect(p.ctx, src, name, source.StalePolicy{})
		require.ErrorIs(p, err, source.ErrInvalid, "%q", name)
		_, err = multilock.Break(p.ctx, src, name, multilock.BreakOptions{Alive: true})
		require.ErrorIs(p, err, source.ErrInvalid, "%q", name)
	}
	p.requireNames(src)
}

func testNames(p *place) {
	a, b := p.open(), p.open()
	p.requireNames(a)
	_, err := multilock.Inspect(p.ctx, a, "nobody", source.StalePolicy{})
	require.NoError(p, err)
	p.requireNames(a)

	two := p.try(a, "two", multilock.Options{})
	one := p.try(b, "one", multilock.Options{})
	three := p.try(a, "three", multilock.Options{})
	p.requireNames(a, "one", "three", "two")
	p.requireNames(b, "one", "three", "two")
	p.release(one)
	p.requireNames(a, "three", "two")
	p.forced(b, "three", three.Record().Token)
	p.requireNames(a, "two")
	p.release(two)
	p.requireNames(b)
}
