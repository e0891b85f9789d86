package redact

import (
	"slices"
	"strings"
	"unicode"
)

// isSecret says whether the name of an option, a variable, a field or a header is that of
// a secret. "tokens" are counted, and a "password-file" is named.
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
	// secretEnds end a part of a name (so PGPASSWORD, clientsecret), secretWords are one.
	secretEnds = []string{
		"password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "accesskey", "secretkey", "privatekey", "credential",
		"credentials", "authorization", "storepass", "keypass",
	}
	secretWords = []string{"pass", "dbpass", "userpass", "pw", "psk", "cred", "creds", "otp", "jwt", "bearer", "cookie"}
	// secretKeys are keys that open something: a sort-key does not.
	secretKeys = []string{"api", "access", "secret", "private", "encryption", "signing", "master", "auth", "account", "license"}
	// notIf begins, and notIn ends, names of what only has to do with a secret.
	notIf = []string{"no", "non", "ask", "prompt", "skip", "without", "with", "show", "max", "min", "num", "n", "enable", "disable", "allow", "require", "use"}
	notIn = []string{
		"file", "files", "filename", "path", "dir", "directory", "jar", "keyring", "store", "storage", "cache", "name", "names", "id", "ids", "user", "username",
		"url", "uri", "endpoint", "host", "port", "count", "limit", "size", "length", "len", "bytes", "bits", "max", "min", "ttl", "age", "lifetime", "timeout",
		"expiry", "expires", "expiration", "days", "hours", "minutes", "seconds", "interval", "attempts", "retries", "type", "kind", "mode", "format", "policy", "algorithm",
		"stdin", "prompt", "fd", "command", "cmd", "env", "var", "helper", "manager", "provider", "backend", "version", "header", "field", "column",
		"enabled", "required", "scope", "issuer", "audience", "arn", "budget", "bucket", "hint", "rotation",
	}
)

// partsOf cuts a name at its signs and at its capitals.
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

// isHeader knows the names that a colon alone makes fields.
func isHeader(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "authorization") || name == "cookie" || strings.HasPrefix(name, "x-")
}

// isHarmless says of the value of a secret's name that it is none: a switch, or a number
// of passes.
func isHarmless(value string) bool {
	return len(value) < 2 || slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "none", "null", mark}, strings.ToLower(value))
}

// isPath says that the value is where a private key lies, and not the key.
func isPath(name, value string) bool {
	return strings.Contains(strings.ToLower(name), "private") && strings.HasPrefix(strings.TrimLeft(value, ".~@"), "/")
}

// isOption says that a word is an option, and not the secret that could stand there.
func isOption(word string) bool {
	return word == "-" || len(word) > 2 && strings.HasPrefix(word, "--") || len(word) == 2 && word[0] == '-'
}

// isScheme says that the secret stands in the next word.
func isScheme(word string) bool {
	return slices.Contains([]string{"bearer", "basic", "digest", "negotiate", "token", "apikey"}, strings.ToLower(word))
}

// program is what is known of a program's short options.
type program struct {
	letter  byte   // of the option with its secret
	apart   bool   // it may stand in the next word
	login   byte   // between user and password behind -u or -U
	command string // of the program, before which its letter means something else
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
