package place

import "strings"

// JobEnviron returns a job's environment: ours without secrets. A job that uses the same source reads
// the password from the file in MULTILOCK_PASSWORD_FILE. Relative paths become absolute, because they
// would mean other files after a cd.
func JobEnviron(environ []string) []string {
	var vars []string
	for _, entry := range environ {
		switch name, value, _ := strings.Cut(entry, "="); {
		case name == EnvPassword, name == EnvCloudshellToken, name == EnvPing:
		case name == EnvSource:
			vars = append(vars, name+"="+absoluteURL(publicURL(value)))
		case name == EnvDir, name == EnvPasswordFile, name == EnvConfig && value != noConfig:
			vars = append(vars, name+"="+absoluteIfGiven(value))
		default:
			vars = append(vars, entry)
		}
	}
	return vars
}

// absoluteIfGiven leaves an empty variable empty: it counts as unset.
func absoluteIfGiven(path string) string {
	if path == "" {
		return ""
	}
	return Absolute(path)
}

// absoluteURL makes the path of file:PATH or cook+file:PATH?PARAMETERS absolute.
func absoluteURL(text string) string {
	scheme, rest, _ := strings.Cut(text, ":")
	if scheme != fileScheme && scheme != "cook+"+fileScheme || rest == "" || rest[0] == '/' {
		return text
	}
	path, parameters, with := strings.Cut(rest, "?")
	if scheme == fileScheme {
		path, parameters, with = rest, "", false // its path may have any byte
	}
	if with {
		parameters = "?" + parameters
	}
	return scheme + ":" + Absolute(path) + parameters
}
