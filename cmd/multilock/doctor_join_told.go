package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// joinCommand is what the locks of a meeting say of themselves.
const joinCommand = "multilock doctor --join"

// account is what a participant tells the others when it has had its turns. It is
// the command of a lock, because that is what every source keeps and shows.
type account struct {
	Harm   bool // it has seen that locks are not safe
	Turns  int
	Fences []uint64
	Clock  *time.Duration // how far its clock is ahead of the source's
	// Garbled says that another version told it, or that the source has cut it.
	Garbled bool
}

// maxTold bounds the numbers that are told: some sources have little room.
const maxTold = 8

// tell lets the others know what came of this host's turns.
func (m *meeting) tell(ctx context.Context) error {
	return m.mark(ctx, toldMark, m.account().String())
}

// reply compares what all have told, and lets them know that they may leave, and what
// this host has seen since it told its own.
func (m *meeting) reply(ctx context.Context) error {
	m.compare()
	return m.mark(ctx, readMark, m.account().String())
}

func (m *meeting) account() account {
	return account{Harm: len(m.harm) > 0, Turns: m.turns, Fences: m.fences[:min(len(m.fences), maxTold)], Clock: m.clock}
}

// compare finds turns of one number: those were at the same time.
func (m *meeting) compare() {
	owners := map[uint64]string{}
	for _, number := range m.fences {
		owners[number] = "this host"
	}
	for _, p := range m.peers {
		if p.account == nil {
			continue
		}
		for _, number := range p.account.Fences {
			if other, taken := owners[number]; taken {
				m.harmed("a turn of %s and one of %s had the same fencing number %d: both held the lock at the same time", other, p.name(), number)
			}
			owners[number] = p.name()
		}
	}
}

// The words of an account. The last one shows that nothing was cut off.
const (
	wordHarm  = "unsafe"
	wordTurns = "turns="
	wordFence = "fence="
	wordClock = "clock="
	wordEnd   = "end"
)

func (a account) String() string {
	words := []string{joinCommand + ":"}
	if a.Harm {
		words = append(words, wordHarm)
	}
	words = append(words, wordTurns+strconv.Itoa(a.Turns))
	for _, number := range a.Fences {
		words = append(words, wordFence+strconv.FormatUint(number, 10))
	}
	if a.Clock != nil {
		words = append(words, wordClock+a.Clock.String())
	}
	return strings.Join(append(words, wordEnd), " ")
}

// parseAccount reads what another participant told.
func parseAccount(text string) *account {
	rest, ours := strings.CutPrefix(text, joinCommand+": ")
	rest, whole := strings.CutSuffix(rest, " "+wordEnd)
	if !ours || !whole {
		return &account{Garbled: true}
	}
	a := &account{}
	for word := range strings.FieldsSeq(rest) {
		if err := a.parse(word); err != nil {
			return &account{Garbled: true}
		}
	}
	return a
}

func (a *account) parse(word string) (err error) {
	key, value, _ := strings.Cut(word, "=")
	switch key + "=" {
	case wordHarm + "=":
		a.Harm = true
	case wordTurns:
		a.Turns, err = strconv.Atoi(value)
	case wordFence:
		var number uint64
		number, err = strconv.ParseUint(value, 10, 64)
		a.Fences = append(a.Fences, number)
	case wordClock:
		var ahead time.Duration
		ahead, err = time.ParseDuration(value)
		a.Clock = &ahead
	default:
		err = fmt.Errorf("unknown word %q", word)
	}
	return err
}
