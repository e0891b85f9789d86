package explore

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// Sample plays schedules that are drawn from a seed.
func (sc *Scenario) Sample(t *testing.T, seed uint64, schedules int) Report {
	return sc.draw(t, seed, schedules, 1)
}

// Guide plays schedules that are drawn from a seed. Half of them are variations of schedules that have shown
// something new. So it reaches what needs many choices, each of which shows something, where Sample would
// have to draw all of them at once.
func (sc *Scenario) Guide(t *testing.T, seed uint64, schedules int) Report {
	return sc.draw(t, seed, schedules, 2)
}

// draw draws one of afresh schedules independently of the others.
func (sc *Scenario) draw(t *testing.T, seed uint64, schedules, afresh int) (r Report) {
	begin := time.Now()
	from := sc.prepare(t)
	known := finds{sights: map[simnfs.Sum]struct{}{}}
	for n := range schedules {
		random := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // to be repeated
		w := sc.play(t, known.next(random, afresh), nil, from)
		r.count(w)
		r.Took = time.Since(begin)
		if w.violation != "" {
			return sc.found(t, r, w)
		}
		known.add(w)
		r.Sights = len(known.sights)
	}
	return r
}

// finds are the schedules that have shown something new.
type finds struct {
	sights map[simnfs.Sum]struct{}
	all    []*find
}

// find is such a schedule.
type find struct {
	choices Choices
	length  int // number of its choices
	first   int // number of choices before the first new observation
	tried   int // number of variations made of it
}

// next draws a schedule, or varies the find with the fewest variations, the latest one of these.
func (f *finds) next(random *rand.Rand, afresh int) schedule {
	if afresh == 1 || len(f.all) == 0 || random.IntN(afresh) == 0 {
		return schedule{random: random, odds: 4 << random.IntN(5)}
	}
	from := f.all[0]
	for _, one := range f.all {
		if one.tried <= from.tried {
			from = one
		}
	}
	from.tried++
	if random.IntN(2) == 0 {
		return from.goesOn(random)
	}
	return from.varied(random)
}

// goesOn repeats a find until shortly before its new observation, because a choice only shows its effect
// later, and draws the rest.
func (f *find) goesOn(random *rand.Rand) schedule {
	given := maps.Clone(f.choices)
	maps.DeleteFunc(given, func(at, _ int) bool { return at >= f.first })
	return schedule{given: given, repeated: f.first - random.IntN(4), random: random, odds: 2 << random.IntN(5)}
}

// varied drops up to two of the choices, whose number is limited, and draws a few others.
func (f *find) varied(random *rand.Rand) schedule {
	given := maps.Clone(f.choices)
	places := slices.Sorted(maps.Keys(given))
	for range min(random.IntN(3), len(places)) {
		delete(given, places[random.IntN(len(places))])
	}
	return schedule{given: given, random: random, odds: max(f.length>>random.IntN(3), 4)}
}

// add records the observations of a schedule, and the schedule if one is new.
func (f *finds) add(w *World) {
	first := len(w.schedule.taken)
	known := len(f.sights)
	for sight, at := range w.sights {
		if _, known := f.sights[sight]; !known {
			f.sights[sight] = struct{}{}
			first = min(first, at)
		}
	}
	if len(f.sights) > known {
		f.all = append(f.all, &find{choices: w.schedule.choices(), length: len(w.schedule.taken), first: first})
	}
}

// looks records an observation of a drawn schedule.
func (w *World) looks() {
	if w.schedule.random == nil {
		return
	}
	if w.sights == nil {
		w.sights = map[simnfs.Sum]int{}
	}
	if sight := w.sight(); w.sights[sight] == 0 {
		w.sights[sight] = len(w.schedule.taken)
	}
}

// sight hashes an observation without times and without distinguishing an actor's objects: the names on the
// server, and which actors rely on a lock. It has few enough values that most schedules show no new one.
func (w *World) sight() simnfs.Sum {
	if w.shape == 0 {
		w.shape = w.Server.Named(simnfs.View{
			Now: time.Now(), Ages: func(string) bool { return false }, Ident: func(uint64) uint64 { return 0 }, Label: w.likened,
		})
	}
	sum := w.shape
	for _, a := range w.actors {
		sum.Add(0)
		if a.Believes() {
			sum.Add(1)
		}
	}
	return sum
}
