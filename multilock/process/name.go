package process

import (
	"strconv"
	"strings"
	"unicode"
)

// printable returns a name as it is if it can stand in a message, and quoted if
// not: names are data of others and may hold line feeds or escape sequences.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.QuoteToASCII(name)
	}
	return name
}
