package redact

import (
	"path"
	"strings"
)

// command is the state of parsing the words of one command.
type command struct {
	found     secrets
	expected  expectation // of the next word
	program   program     // the last one that occurred
	separator byte        // between the user and the password of a login
	depth     int
}

// expectation is the kind of a word, as implied by the word before it.
type expectation int

const (
	anything expectation = iota
	aSecret
	aScheme // of authorization, before the secret; or a secret
	aLogin  // user:password, or with the program's separator
	aScript // for a shell
)

// maxDepth is the maximum nesting of scripts.
const maxDepth = 6

// word parses the next word.
func (c *command) word(t text) {
	expected := c.expected
	c.expected = anything
	switch {
	case expected == aScript:
		c.script(t)
		return
	case expected == aLogin:
		c.login(t, 0, c.separator)
	case (expected == aSecret || expected == aScheme) && !isOption(t.plain):
		c.found.add(t, 0, len(t.plain))
		if expected == aScheme && isScheme(t.plain) {
			c.expected = aSecret
		}
		return
	}
	if strings.HasPrefix(t.plain, "-") {
		c.option(t)
	} else {
		c.argument(t.plain)
	}
	c.urls(t)
	c.fields(t)
	c.script(t) // it may be a script: ssh HOST 'SCRIPT'
}

// argument determines from a word that is not an option what follows.
func (c *command) argument(word string) {
	switch p := programOf(path.Base(word)); {
	case p != (program{}):
		c.program = p
	case word == c.program.command:
		c.program.command = ""
	}
	if name, isField := strings.CutSuffix(word, ":"); isField && !strings.ContainsFunc(name, notInName) && isSecret(name) {
		c.expected = aScheme
	}
}

// option does so for an option.
func (c *command) option(t text) {
	long, isLong := strings.CutPrefix(t.plain, "--")
	name, _, assigned := strings.Cut(long, "=")
	switch {
	case isSecret(t.plain):
		c.expected = aSecret
	case isLong && (long == "auth" || long == "basic-auth"):
		c.expected, c.separator = aLogin, ':'
	case isLong && c.program.login != 0 && (name == "user" || name == "proxy-user"):
		if assigned {
			c.login(t, len("--"+name+"="), c.program.login)
			return
		}
		c.expected, c.separator = aLogin, c.program.login
	case !isLong && len(t.plain) > 1:
		c.short(t)
	}
}

// short parses options of one letter, which depend on the program.
func (c *command) short(t text) {
	letters, p := t.plain[1:], c.program
	last := letters[len(letters)-1]
	if p.command != "" {
		p.letter = 0
	}
	switch {
	case p.login != 0 && (last == 'u' || last == 'U'):
		c.expected, c.separator = aLogin, p.login
	case p.login != 0 && (letters[0] == 'u' || letters[0] == 'U'):
		c.login(t, 2, p.login)
	case p.letter != 0 && letters[0] == p.letter && len(letters) > 1:
		c.found.add(t, 2, len(t.plain))
		c.program = program{}
	case p.apart && p.letter != 0 && letters == string(p.letter):
		c.expected, c.program = aSecret, program{}
	case last == 'c' && strings.Trim(letters, "abcdefghijklmnopqrstuvwxyz") == "":
		c.expected = aScript // sh -c, bash -lc
	}
}

// login hides what follows the separator of user:password.
func (c *command) login(t text, from int, separator byte) {
	if user, password, found := strings.Cut(t.plain[from:], string(separator)); found && password != "" {
		c.found.add(t, from+len(user)+1, len(t.plain))
	}
}

// script parses a word that a shell may parse again.
func (c *command) script(t text) {
	if c.depth < maxDepth && strings.ContainsAny(t.plain, blanks+operators+quotes) {
		c.found = append(c.found, secretsOfLine(t, c.depth+1)...)
	}
}

const (
	blanks    = " \t\r"
	operators = "\n;|&()" // another command follows
	quotes    = `'"\`
)

// secretsOfLine parses a line as a shell does.
func secretsOfLine(t text, depth int) secrets {
	c := command{depth: depth}
	w := &lexer{line: t}
	for word, ok := w.next(); ok; word, ok = w.next() {
		if w.another {
			c.program, c.expected, w.another = program{}, anything, false
		}
		c.word(word)
	}
	return c.found
}

// lexer splits a line into words.
type lexer struct {
	line    text
	i       int
	another bool // an operator precedes the word
}

func (l *lexer) next() (word text, ok bool) {
	l.skip()
	var plain []byte
	quote := byte(0)
	for ; l.i < len(l.line.plain); l.i++ {
		b := l.line.plain[l.i]
		switch {
		case quote == 0 && strings.IndexByte(blanks+operators, b) >= 0:
			return text{string(plain), word.at}, true
		case quote == 0 && b == '\'' && strings.HasSuffix(l.line.plain[:l.i], "$"):
			quote = '$' // in $'...' a backslash is special
		case quote == 0 && (b == '\'' || b == '"'):
			quote = b
		case b == quote || quote == '$' && b == '\'':
			quote = 0
		default:
			if b == '\\' && quote != '\'' && l.i+1 < len(l.line.plain) {
				l.i++
			}
			plain = append(plain, l.line.plain[l.i])
			word.at = append(word.at, l.line.at[l.i])
		}
		ok = true
	}
	return text{string(plain), word.at}, ok
}

// skip skips characters between words.
func (l *lexer) skip() {
	for ; l.i < len(l.line.plain); l.i++ {
		b := l.line.plain[l.i]
		if strings.IndexByte(operators, b) >= 0 {
			l.another = true
		} else if strings.IndexByte(blanks, b) < 0 {
			return
		}
	}
}
