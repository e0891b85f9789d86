package fakecloudshell

import (
	"fmt"
	"strings"
)

// arguments are the parameters that a request has.
type arguments map[string]*element

// bind takes the parameters out of a request. A parameter that is unknown,
// missing, repeated or out of order is an error: the clients of the real server
// send them in one order, and nobody knows what else it takes.
func bind(root *element, parameters []parameter) (arguments, error) {
	bound := arguments{}
	rest := root.children
	for _, p := range parameters {
		switch {
		case len(rest) > 0 && rest[0].name == p.name:
			bound[p.name] = rest[0]
			rest = rest[1:]
		case !p.optional:
			return nil, fmt.Errorf("parameter %s is missing or out of order", p.name)
		}
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("parameter %s is unknown, repeated or out of order", rest[0].name)
	}
	return bound, nil
}

// text is a parameter's text, "" if it is missing.
func (a arguments) text(name string) string {
	if a[name] == nil {
		return ""
	}
	return a[name].text
}

// flag is an xs:boolean; a missing or empty one is false.
func (a arguments) flag(name string) (bool, error) {
	switch text := strings.TrimSpace(a.text(name)); text {
	case "true", "1":
		return true, nil
	case "false", "0", "":
		return false, nil
	default:
		return false, fmt.Errorf("parameter %s is %q instead of true or false", name, text)
	}
}

// strings is a list: <name><string>a</string><string>b</string></name>.
func (a arguments) strings(name string) ([]string, error) {
	var list []string
	for _, item := range a[name].children {
		if item.name != "string" || len(item.children) > 0 {
			return nil, fmt.Errorf("parameter %s has an element %s instead of string", name, item.name)
		}
		list = append(list, item.text)
	}
	return list, nil
}

// pair is a member of a list of structures with a name or key, and a value.
type pair struct{ name, value string }

// pairs is a list of structures, whose members come in alphabetical order. The
// value may be missing.
func (a arguments) pairs(name, structure, key string) ([]pair, error) {
	var list []pair
	for _, item := range a[name].children {
		if item.name != structure {
			return nil, fmt.Errorf("parameter %s has an element %s instead of %s", name, item.name, structure)
		}
		members, err := bind(item, append(required(key), optional("Value")...))
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		}
		list = append(list, pair{members.text(key), members.text("Value")})
	}
	return list, nil
}
