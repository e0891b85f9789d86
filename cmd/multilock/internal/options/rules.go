package options

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/multilock/go/internal/span"
)

// Rule is a relation between options of commands.
type Rule struct {
	For   string // the commands
	If    string // any of these options; always if empty. With =VALUE, only with that value
	Needs string // one of these
	Not   string // none of these; without it and Needs, any use of If is rejected
	Why   string
}

// Name stands for a lock's name, as an argument or after -n.
const Name = "NAME"

// Check finds contradictions on a command line with these arguments.
func (l *Line) Check(command string, args []string) error {
	if err := l.checkValues(command); err != nil {
		return err
	}
	for _, rule := range rules {
		if !contains(rule.For, command) {
			continue
		}
		if rule.If == "" {
			if !l.any(rule.Needs, args) {
				return fmt.Errorf("%s is missing: %s", spell(command, rule.Needs), rule.Why)
			}
			continue
		}
		for one := range strings.FieldsSeq(rule.If) {
			if err := l.checkOne(command, rule, one, args); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Line) checkOne(command string, rule Rule, one string, args []string) error {
	if !l.has(one, args) {
		return nil
	}
	shown := spell(command, one)
	switch {
	case one == Name && len(args) > 0:
		shown = fmt.Sprintf("%q", args[0])
	case one == Name:
		shown = "-n NAME"
	}
	switch {
	case rule.Needs == "" && rule.Not == "":
		return fmt.Errorf("unexpected %s: %s", shown, rule.Why)
	case rule.Needs != "" && !l.any(rule.Needs, args):
		return fmt.Errorf("%s needs %s: %s", shown, spellAll(command, rule.Needs), rule.Why)
	}
	for other := range strings.FieldsSeq(rule.Not) {
		if l.has(other, args) {
			return fmt.Errorf("%s and %s cannot be used together: %s", shown, spell(command, other), rule.Why)
		}
	}
	return nil
}

// checkValues finds values that parse but are not valid.
func (l *Line) checkValues(command string) error {
	for _, o := range Accepted(command) {
		text, given := l.Given[o.Name]
		if why := o.refuse(text); given && why != "" {
			return fmt.Errorf("%s %s", cmp.Or(l.Spelling[o.Name], "--"+o.Name), why)
		}
	}
	return nil
}

// refuse returns why a parsed value is not valid, "" if it is.
func (o *Option) refuse(text string) string {
	least, most, isRange := strings.Cut(o.Range, "..")
	n, _ := strconv.Atoi(text)
	from, _ := strconv.Atoi(least)
	to, _ := strconv.Atoi(most)
	switch {
	case (o.Filled || o.Common) && text == "":
		return "is empty"
	case isRange && most != "" && (n < from || n > to):
		return fmt.Sprintf("%s: choose a number from %s to %s", text, least, most)
	case isRange && n < from && from == 0:
		return text + ": must not be negative"
	case isRange && n < from:
		return fmt.Sprintf("%s: must be at least %s", text, least)
	case o.Zero != "" && isZero(text):
		return text + ": " + o.Zero
	}
	return ""
}

func isZero(text string) bool {
	d, err := span.Parse(text)
	return err == nil && d == 0
}

func (l *Line) any(options string, args []string) bool {
	for one := range strings.FieldsSeq(options) {
		if l.has(one, args) {
			return true
		}
	}
	return false
}

// has reports whether an option was given; for NAME, whether there is an argument or -n.
func (l *Line) has(option string, args []string) bool {
	name, value, valued := strings.Cut(option, "=")
	switch {
	case name == Name:
		return len(args) > 0 || l.Has("name")
	case !valued:
		return l.Has(name)
	default:
		return l.Has(name) && (l.Given[name] == value || value == "0" && isZero(l.Given[name]))
	}
}

// spell returns an option of a rule as typed by the user.
func spell(command, option string) string {
	name, value, valued := strings.Cut(option, "=")
	o := Find(command, name)
	switch {
	case o == nil:
		return option
	case valued:
		return "--" + name + " " + value
	case o.Common && o.Letter != "":
		return "-" + o.Letter
	}
	return "--" + name
}

// spellAll returns a choice of options, with the values to type after them.
func spellAll(command, options string) string {
	var all []string
	for one := range strings.FieldsSeq(options) {
		words := spell(command, one)
		if o := Find(command, one); o != nil && o.TakesValue() {
			words += " " + o.Word()
		}
		all = append(all, words)
	}
	return oneOf(all)
}

func oneOf(all []string) string {
	last := len(all) - 1
	if last < 1 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

func contains(words, word string) bool {
	return strings.Contains(" "+words+" ", " "+word+" ")
}
