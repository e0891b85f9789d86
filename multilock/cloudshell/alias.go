package cloudshell

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/multilock/go/multilock/source"
)

// Aliases, of the lock MUTEX without a group and of one in the group PREFIX:
//
//	MUTEX         the lock as known to scripts
//	MUTEX.TURN.17 the lock's register, see register.go
//	PREFIX.MUTEX  the lock MUTEX of the group
//
// A name is its own alias, except that the word TURN, and bytes that a server may reject or trim,
// are written as [HEX].
const turnMark = ".TURN."

// maxAlias limits a lock's alias. The server's limit is not documented.
const maxAlias = 220

var (
	unusual = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9 ._-]+|^ +| +$|\bTURN\b`) })
	encoded = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[(?:[0-9A-F]{2})+\]`) })
)

// aliasOf returns the alias of a lock.
func (s *Source) aliasOf(name string) string { return s.prefix + encodeName(name) }

// nameOf returns the name of the lock with an alias; ok is false if no lock of the group
// can have that alias.
func (s *Source) nameOf(alias string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(alias, s.prefix)
	if !ok || rest == "" {
		return "", false
	}
	name = decodeName(rest)
	return name, encodeName(name) == rest
}

// prefixOf returns the prefix of a group's aliases.
func prefixOf(group string) string {
	if group == "" {
		return ""
	}
	return encodeName(group) + "."
}

// CheckName implements source.NameChecker. It accepts any name that is not too long.
func (s *Source) CheckName(name string) error {
	length := len(s.aliasOf(name))
	why := fmt.Sprintf("makes an alias of %d characters; at most %d fit", length, maxAlias)
	switch {
	case name == "":
		why = "must not be empty"
	case length <= maxAlias:
		return nil
	}
	return &source.InvalidError{What: "lock name", Got: name, Why: why}
}

func encodeName(name string) string {
	return unusual().ReplaceAllStringFunc(name, func(found string) string { return fmt.Sprintf("[%X]", found) })
}

// decodeName is the reverse of encodeName.
func decodeName(alias string) string {
	return encoded().ReplaceAllStringFunc(alias, func(found string) string {
		decoded, _ := hex.DecodeString(found[1 : len(found)-1])
		return string(decoded)
	})
}

func turnAlias(base string, number uint64) string {
	return base + turnMark + strconv.FormatUint(number, 10)
}

// cutTurn parses the alias of a turn.
func cutTurn(alias string) (base string, number uint64, ok bool) {
	i := strings.LastIndex(alias, turnMark)
	if i < 0 {
		return "", 0, false
	}
	number, err := strconv.ParseUint(alias[i+len(turnMark):], 10, 63)
	return alias[:i], number, err == nil && number > 0 && turnAlias(alias[:i], number) == alias
}
