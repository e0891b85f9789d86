package process

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Life is what is known about a process or a process group.
type Life int

const (
	// Unknown means that nothing can be proved from here. It is the zero value, so that evidence that was
	// not filled in proves nothing.
	Unknown Life = iota
	// Alive means that the process exists, or that a process with its number exists and nothing proves that
	// it is another one.
	Alive
	// Gone is proof that it will never run again: it does not exist, its number belongs to another process,
	// or only a zombie is left.
	Gone
)

// String returns "unknown", "alive" or "gone".
func (l Life) String() string {
	switch l {
	case Unknown:
		return "unknown"
	case Alive:
		return "alive"
	case Gone:
		return "gone"
	}
	return fmt.Sprintf("Life(%d)", int(l))
}

// Evidence is a judgement and its reason.
type Evidence struct {
	// Life is the judgement.
	Life Life
	// Why is a short phrase for people, such as "process 4711 (rsync) is running on this host". It is not
	// meant to be parsed. It may contain the name of a process, quoted if that has unprintable characters.
	Why string
}

func evidence(life Life, format string, args ...any) Evidence {
	return Evidence{Life: life, Why: fmt.Sprintf(format, args...)}
}

// printable returns a name as it is if it is printable, and quoted otherwise: other users choose the names,
// which may contain line feeds or escape sequences.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.QuoteToASCII(name)
	}
	return name
}
