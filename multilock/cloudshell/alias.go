package cloudshell

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/multilock/go/multilock/source"
)

// Aliases. With the lock MUTEX of no group, and PREFIX. for one of a group:
//
//	MUTEX                   the lock as scripts know it
//	MUTEX.TURN.17           the lock's register, see register.go
//	MUTEX.RESULT.ID.0       a piece of the result of the job of that name
//	PREFIX.MULTILOCK.TURN.1 the list of jobs of the group
//
// A name is an alias as it is, but for what a server may refuse, trim or take for
// one of these: of such a name some bytes are written as [HEX].
const (
	turnMark   = ".TURN."
	resultMark = ".RESULT."
	listName   = "MULTILOCK"
)

// maxAlias bounds a lock's alias. What a server takes is not documented.
const maxAlias = 220

// aliasOf is the alias of a lock.
func (s *Source) aliasOf(name string) string { return s.prefix + encodeName(name) }

// nameOf is the name of the lock with an alias; ok is false if it is none of the group's, or
// the alias of somebody else, which no lock here could have.
func (s *Source) nameOf(alias string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(alias, s.prefix)
	if !ok || rest == "" {
		return "", false
	}
	name = decodeName(rest)
	return name, s.aliasOf(name) == alias
}

// prefixOf is what the aliases of a group begin with.
func prefixOf(group string) string {
	if group == "" {
		return ""
	}
	return encodeName(group) + "."
}

// CheckName implements source.NameChecker: any name will do that is not too long.
func (s *Source) CheckName(name string) error { return s.checkName("lock name", name) }

func (s *Source) checkName(what, name string) error {
	switch length := len(s.aliasOf(name)); {
	case name == "":
		return &source.InvalidError{What: what, Got: name, Why: "must not be empty"}
	case length > maxAlias:
		return &source.InvalidError{What: what, Got: name, Why: fmt.Sprintf("makes an alias of %d characters; at most %d fit", length, maxAlias)}
	}
	return nil
}

func encodeName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if kept(name, i) {
			b.WriteByte(name[i])
		} else {
			fmt.Fprintf(&b, "[%02X]", name[i])
		}
	}
	return b.String()
}

// kept says whether a byte of a name can stand in an alias as it is.
func kept(name string, i int) bool {
	switch c := name[i]; {
	case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		return true
	case c >= 'A' && c <= 'Z':
		return !reserved(name, i)
	case c == ' ':
		return i > 0 && i < len(name)-1
	}
	return false
}

// reserved says whether one of our own marks begins at i.
func reserved(name string, i int) bool {
	if i > 0 && name[i-1] != '.' {
		return false
	}
	word, _, _ := strings.Cut(name[i:], ".")
	return slices.Contains([]string{"TURN", "RESULT", listName}, word)
}

var encodedByte = regexp.MustCompile(`\[[0-9A-Fa-f]{2}\]`)

// decodeName is the reverse. What encodeName does not write stays as it is.
func decodeName(alias string) string {
	return encodedByte.ReplaceAllStringFunc(alias, func(found string) string {
		decoded, _ := hex.DecodeString(found[1:3])
		return string(decoded)
	})
}

func turnAlias(base string, number uint64) string {
	return base + turnMark + strconv.FormatUint(number, 10)
}

func pieceAlias(base, id string, piece int) string {
	return base + resultMark + id + "." + strconv.Itoa(piece)
}

// cutTurn takes the alias of a turn apart.
func cutTurn(alias string) (base string, number uint64, ok bool) {
	i := strings.LastIndex(alias, turnMark)
	if i < 0 {
		return "", 0, false
	}
	digits := alias[i+len(turnMark):]
	number, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || number == 0 || strconv.FormatUint(number, 10) != digits {
		return "", 0, false
	}
	return alias[:i], number, true
}

// cutPiece takes the alias of a piece of a result apart.
func cutPiece(alias string) (base, id string, piece int, ok bool) {
	i := strings.LastIndex(alias, resultMark)
	if i < 0 {
		return "", "", 0, false
	}
	id, digits, found := strings.Cut(alias[i+len(resultMark):], ".")
	number, err := strconv.ParseUint(digits, 10, 16)
	if !found || id == "" || err != nil {
		return "", "", 0, false
	}
	return alias[:i], id, int(number), true
}
