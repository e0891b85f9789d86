package redact

import "strings"

// fields finds NAME=VALUE, NAME: VALUE and "NAME": "VALUE" anywhere in a word.
func (c *command) fields(t text) {
	for i := 0; i < len(t.plain); i++ {
		if b := t.plain[i]; b != '=' && b != ':' {
			continue
		}
		from, name := nameBefore(t.plain[:i])
		if !isField(t.plain, i, name) {
			continue
		}
		start, end := value(t.plain, from, i+1)
		if !isPath(name, t.plain[start:end]) {
			c.found.add(t, start, end)
		}
		i = max(i, end-1)
	}
	if strings.HasPrefix(t.plain, "pass:") { // openssl -passin pass:SECRET
		c.found.add(t, len("pass:"), len(t.plain))
	}
}

// isField reports whether a secret follows position i. A colon alone is ambiguous:
// -v secret:/run/secret.
func isField(s string, i int, name string) bool {
	if !isSecret(name) {
		return false
	}
	last := s[i-1]
	return s[i] == '=' || last == '"' || last == '\'' || isHeader(name) || i+1 < len(s) && strings.IndexByte(blanks+`'"`, s[i+1]) >= 0
}

// nameBefore returns the name at the end of a text, which may be quoted, and its position.
func nameBefore(s string) (from int, name string) {
	s = strings.TrimSuffix(strings.TrimRight(s, `'"`), `\`)
	from = strings.LastIndexFunc(s, notInName) + 1
	return from, s[from:]
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.", r)
}

// value returns the range of a field's value. The field's name begins at from, and the value at start or
// after blanks there.
func value(s string, from, start int) (int, int) {
	for start < len(s) && strings.IndexByte(blanks+`\`, s[start]) >= 0 {
		start++
	}
	if start < len(s) && (s[start] == '"' || s[start] == '\'') {
		return start + 1, start + 1 + quoted(s[start+1:], s[start])
	}
	before := strings.TrimSuffix(s[:from], `\`)
	if strings.TrimFunc(before, func(r rune) bool { return !notInName(r) || r == '=' }) == "" {
		return start, len(s) // the rest of the word: PASSWORD=X, --env=PASSWORD=X
	}
	if end := strings.IndexAny(s[start:], enders(before[len(before)-1])); end >= 0 {
		return start, start + end
	}
	return start, len(s)
}

// quoted returns the length of a text up to its closing quote.
func quoted(s string, quote byte) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i+1 < len(s) && s[i+1] == quote && quote == '"' && strings.IndexByte(s[i+2:], '"') < 0 {
				return i // the quote is itself escaped: \"NAME\": \"VALUE\"
			}
			i++
		case quote:
			return i
		}
	}
	return len(s)
}

// enders returns the characters that end a value, by the character before its name.
func enders(before byte) string {
	switch before {
	case '?', '&':
		return "&#'\"" + blanks + "\n"
	case ';':
		return ";'\""
	}
	return ",;&'\")}]" + blanks + "\n"
}

// urls finds the password in scheme://user:password@host, and a user that can only be a token:
// https://TOKEN@host. A password may contain a / unless the text before that is a port.
func (c *command) urls(t text) {
	for from := 0; ; {
		i := strings.Index(t.plain[from:], "://")
		if i < 0 {
			break
		}
		from += i + len("://")
		rest := t.plain[from:]
		if end := strings.IndexAny(rest, blanks+"\n'\"<>"); end >= 0 {
			rest = rest[:end]
		}
		c.userinfo(t, from, rest)
	}
	if user, rest, found := strings.Cut(t.plain, ":"); found && user != "" && strings.IndexFunc(user, notInName) < 0 &&
		!strings.HasPrefix(rest, "/") && !strings.Contains(rest, "@sha") {
		if at := strings.LastIndexByte(rest, '@'); at > 0 { // user:password@host
			c.found.add(t, len(user)+1, len(user)+1+at)
		}
	}
}

// maxUser is the longest user name; a longer one is a token.
const maxUser = 20

func (c *command) userinfo(t text, from int, rest string) {
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	at := strings.LastIndexByte(authority, '@')
	colon := strings.IndexByte(authority, ':')
	switch {
	case colon < 0 && at > maxUser:
		c.found.add(t, from, from+at)
	case colon >= 0 && (at > colon || at < 0 && authority[0] != '[' && strings.Trim(authority[colon+1:], "0123456789,") != ""):
		c.found.add(t, from+colon+1, from+strings.LastIndexByte(rest, '@'))
	}
}
