package trial

import (
	"encoding/json"
	"strings"
)

// Account is what a participant tells of itself when it has had its turns. It is told
// as the command of a lock, because that is what every source keeps and shows.
type Account struct {
	Turns  int      `json:"turns"`
	Fences []uint64 `json:"fences"` // their numbers, if the source has such
	// Clock is how far its clock is ahead of the source's, nil if that has none.
	Clock *float64 `json:"clock_ahead_seconds"`
}

// maxTold bounds the numbers that are told: some sources have little room.
const maxTold = 8

// text is the account as the command of a lock, as short as can be.
func (a Account) text(command string, harm bool) string {
	text, _ := json.Marshal([]any{harm, a.Turns, a.Clock, a.Fences[:min(len(a.Fences), maxTold)]}) // nothing that could fail
	return command + ": " + string(text)
}

// parseAccount reads what another participant told; ok is false if another version told
// it, or the source has cut it.
func parseAccount(text, command string) (a Account, harm, ok bool) {
	a.Fences = []uint64{}
	fields := []any{&harm, &a.Turns, &a.Clock, &a.Fences}
	want := len(fields)
	rest, ours := strings.CutPrefix(text, command+": ")
	if !ours || json.Unmarshal([]byte(rest), &fields) != nil || len(fields) != want {
		return Account{Fences: []uint64{}}, false, false
	}
	return a, harm, true
}

// account is this host's.
func (h *host) account() Account {
	return Account{Turns: h.turns.had, Fences: append([]uint64{}, h.turns.fences...), Clock: h.clock}
}

// compare finds turns of one number: those were at the same time.
func (h *host) compare() {
	owners := map[uint64]string{}
	for _, number := range h.turns.fences {
		owners[number] = "this host"
	}
	for _, p := range h.others.peers {
		for _, number := range p.Fences {
			if other, taken := owners[number]; taken {
				_ = h.noteHarm(unsafef("a turn of %s and one of %s had the same fencing number %d: both held the lock at the same time", other, p.name(), number))
			}
			owners[number] = p.name()
		}
	}
}
