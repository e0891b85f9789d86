package fakecloudshell

import "strings"

// parseAuthorization reads the header Authorization: pairs of key and value, in
// any order, and keys in any case. A value may have "=" in it.
func parseAuthorization(header string) map[string]string {
	pairs := map[string]string{}
	for field := range strings.SplitSeq(header, ";") {
		if key, value, found := strings.Cut(field, "="); found {
			pairs[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return pairs
}

// redactAuthorization is the header without the token. Whatever is not plainly
// something else may be one.
func redactAuthorization(header string) string {
	fields := strings.Split(header, ";")
	for i, field := range fields {
		key, value, found := strings.Cut(field, "=")
		if !found && strings.TrimSpace(field) != "" {
			fields[i] = redacted
			continue
		}
		public := strings.EqualFold(strings.TrimSpace(key), "MachineName")
		if found && !public && strings.TrimSpace(value) != "" {
			fields[i] = key + "=" + redacted
		}
	}
	return strings.Join(fields, ";")
}
