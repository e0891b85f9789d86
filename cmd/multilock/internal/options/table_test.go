package options

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
)

func commands() (all []string) {
	for i := range table {
		for mark := range strings.FieldsSeq(table[i].For) {
			if name := strings.TrimSuffix(mark, "!"); name != "*" && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

func TestTable(t *testing.T) {
	t.Parallel()
	require.Greater(t, len(commands()), 14)
	for _, command := range commands() {
		category, seen := 0, map[string]bool{}
		categories := []string{basics, schedule, limits, output, hooks, advanced}
		for _, o := range Of(command) {
			for _, name := range append(strings.Fields(o.Former), o.Name, o.Letter) {
				require.False(t, name != "" && seen[name], "%s has two options %s", command, name)
				seen[name] = true
			}
			at := slices.Index(categories, o.In)
			require.GreaterOrEqual(t, at, category, "%s --%s: the categories keep their order", command, o.Name)
			category = at
			require.Same(t, o, Find(command, o.Name))
		}
		for _, text := range []string{Short(command), Long(command)} {
			for line := range strings.Lines(text) {
				require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), columns, "%s: %s", command, line)
			}
		}
	}
	require.Equal(t, 1000, lockgroup.MaxSlots)
}

// lineWith returns a command line with these options, each with a value of the right form.
func lineWith(command string, options ...string) (*Line, []string) {
	l, args := NewLine(), []string(nil)
	for _, option := range options {
		name, value, valued := strings.Cut(option, "=")
		switch o := Find(command, name); {
		case name == Name:
			args = []string{"x"}
		case o == nil:
			panic(command + " has no option --" + name)
		case valued:
			l.Given[name] = value
		default:
			l.Given[name] = o.Example()
		}
	}
	return l, args
}

// Each rule is violated in each way: an error names both options, and the reason. The required option
// satisfies the rule.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, rule := range rules {
		for command := range strings.FieldsSeq(rule.For) {
			if rule.If == "" {
				require.ErrorContains(t, NewLine().Check(command, nil), spell(command, rule.Needs)+" is missing: "+rule.Why)
				continue
			}
			for one := range strings.FieldsSeq(rule.If) {
				shown := spell(command, one)
				if one == Name {
					shown = `"x"`
				}
				breaks := func(want string, options ...string) {
					l, args := lineWith(command, options...)
					err := l.checkOne(command, rule, one, args)
					require.EqualError(t, err, want+": "+rule.Why, "%s %q", command, options)
					require.Error(t, l.Check(command, args))
				}
				keeps := func(options ...string) {
					l, args := lineWith(command, options...)
					require.NoError(t, l.checkOne(command, rule, one, args), "%s %q", command, options)
				}
				switch {
				case rule.Needs != "":
					breaks(shown+" needs "+spellAll(command, rule.Needs), one)
					for needed := range strings.FieldsSeq(rule.Needs) {
						keeps(one, needed)
						keeps(needed)
					}
				case rule.Not == "":
					breaks("unexpected "+shown, one)
				}
				for other := range strings.FieldsSeq(rule.Not) {
					breaks(shown+" and "+spell(command, other)+" cannot be used together", one, other)
					keeps(one)
					keeps(other)
				}
			}
		}
	}
}

func TestValuesThatMeanNothing(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]string{
		"label=": "is empty", "slots=1001": "1001: choose a number from 1 to 1000", "fail-after=0": "0: must be at least 1",
		"max-runtime=0s": "0s: leave the option out for no limit",
	} {
		name, _, _ := strings.Cut(option, "=")
		l, _ := lineWith("run", option)
		require.EqualError(t, l.Check("run", nil), "--"+name+" "+want)
	}
}
