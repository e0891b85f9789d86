package redact

import (
	"slices"
	"strings"
	"unicode"
)

// isSecret reports whether an option, variable, field or header with this name holds a secret. "tokens"
// is a count, and a "password-file" holds a path.
func isSecret(name string) bool {
	parts := partsOf(name)
	if len(parts) == 0 || slices.Contains(notIf, parts[0]) || slices.Contains(notIn, parts[len(parts)-1]) {
		return false
	}
	if len(parts) == 2 && parts[0] == "x" && parts[1] == "auth" { // a header
		return true
	}
	for i, part := range parts {
		if slices.Contains(secretWords, part) || slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(part, end) }) ||
			i > 0 && (part == "key" && slices.Contains(secretKeys, parts[i-1]) || part == "pwd") {
			return true
		}
	}
	return false
}

var (
	// secretEnds are suffixes of parts of a name (such as PGPASSWORD, clientsecret), secretWords whole parts.
	secretEnds = []string{
		"password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "accesskey", "secretkey", "privatekey", "credential",
		"credentials", "authorization", "storepass", "keypass",
	}
	secretWords = []string{"pass", "dbpass", "userpass", "pw", "psk", "cred", "creds", "otp", "jwt", "bearer", "cookie"}
	// secretKeys are words before "key" that make it a secret: a sort-key is not.
	secretKeys = []string{"api", "access", "secret", "private", "encryption", "signing", "master", "auth", "account", "license"}
	// notIf begins, and notIn ends, names that are only related to a secret.
	notIf = []string{"no", "non", "ask", "prompt", "skip", "without", "with", "show", "max", "min", "num", "n", "enable", "disable", "allow", "require", "use"}
	notIn = []string{
		"file", "files", "filename", "path", "dir", "directory", "jar", "keyring", "store", "storage", "cache", "name", "names", "id", "ids", "user", "username",
		"url", "uri", "endpoint", "host", "port", "count", "limit", "size", "length", "len", "bytes", "bits", "max", "min", "ttl", "age", "lifetime", "timeout",
		"expiry", "expires", "expiration", "days", "hours", "minutes", "seconds", "interval", "attempts", "retries", "type", "kind", "mode", "format", "policy", "algorithm",
		"stdin", "prompt", "fd", "command", "cmd", "env", "var", "helper", "manager", "provider", "backend", "version", "header", "field", "column",
		"enabled", "required", "scope", "issuer", "audience", "arn", "budget", "bucket", "hint", "rotation",
	}
)

// partsOf splits a name at separators and at capitals.
func partsOf(name string) []string {
	var parts []string
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' }) {
		from := 0
		for i := 1; i < len(word); i++ {
			if unicode.IsLower(rune(word[i-1])) && unicode.IsUpper(rune(word[i])) {
				parts = append(parts, word[from:i])
				from = i
			}
		}
		parts = append(parts, word[from:])
	}
	for i, part := range parts {
		parts[i] = strings.TrimRight(strings.ToLower(part), "0123456789")
	}
	return parts
}

// isHeader reports whether a name followed by a colon is a field.
func isHeader(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "authorization") || name == "cookie" || strings.HasPrefix(name, "x-")
}

// isHarmless reports whether the value of a secret's name is not a secret: a switch, or a number of passes.
func isHarmless(value string) bool {
	return len(value) < 2 || slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "none", "null", mark}, strings.ToLower(value))
}

// isPath reports whether the value is the path of a private key, and not the key.
func isPath(name, value string) bool {
	return strings.Contains(strings.ToLower(name), "private") && strings.HasPrefix(strings.TrimLeft(value, ".~@"), "/")
}

// isOption reports whether a word is an option, and not a secret.
func isOption(word string) bool {
	return word == "-" || len(word) > 2 && strings.HasPrefix(word, "--") || len(word) == 2 && word[0] == '-'
}

// isScheme reports whether the next word is the secret.
func isScheme(word string) bool {
	return slices.Contains([]string{"bearer", "basic", "digest", "negotiate", "token", "apikey"}, strings.ToLower(word))
}

// program describes the short options of a program.
type program struct {
	letter  byte   // of the option with the secret
	apart   bool   // the secret may be the next word
	login   byte   // separator of user and password after -u or -U
	command string // a subcommand of the program, before which the letter has another meaning
}

func programOf(name string) program {
	switch name {
	case "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlshow", "mariadb", "mariadb-dump", "mariadb-admin", "7z", "7za", "7zr":
		return program{letter: 'p'}
	case "sshpass", "mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport":
		return program{letter: 'p', apart: true}
	case "zip", "unzip", "sqlcmd", "bcp":
		return program{letter: 'P', apart: true}
	case "redis-cli":
		return program{letter: 'a', apart: true}
	case "ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami", "ldappasswd":
		return program{letter: 'w', apart: true}
	case "docker", "podman", "nerdctl", "buildah", "skopeo", "crane", "helm", "oras", "oc", "az", "cf":
		return program{letter: 'p', apart: true, command: "login"}
	case "curl":
		return program{login: ':'}
	case "smbclient", "smbget", "smbcacls", "smbcquotas", "smbtree", "rpcclient", "net", "samba-tool":
		return program{login: '%'}
	case "lftp":
		return program{login: ','}
	}
	return program{}
}
