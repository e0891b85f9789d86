package show

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Family is one metric in the Prometheus text format, with a sample for each job.
type Family struct {
	Name, Help, Type string
	Samples          []Sample
}

// Sample is one number of a family.
type Sample struct {
	Suffix string // such as _sum
	Labels map[string]string
	Value  float64
}

// Exposition writes metrics in the Prometheus text format (version 0.0.4). It drops families
// without samples and sorts samples by label, so equal metrics give equal bytes.
func Exposition(families []Family) []byte {
	var out bytes.Buffer
	for _, f := range families {
		if len(f.Samples) == 0 {
			continue
		}
		fmt.Fprintf(&out, "# HELP %s %s\n# TYPE %s %s\n", f.Name, helpEscapes().Replace(f.Help), f.Name, f.Type)
		samples := slices.Clone(f.Samples)
		slices.SortStableFunc(samples, func(a, b Sample) int { return cmp.Compare(a.labels(), b.labels()) })
		for _, s := range samples {
			fmt.Fprintf(&out, "%s%s%s %s\n", f.Name, s.Suffix, s.labels(), strconv.FormatFloat(s.Value, 'f', -1, 64))
		}
	}
	return out.Bytes()
}

// labels formats the labels with braces. Their values are untrusted.
func (s Sample) labels() string {
	if len(s.Labels) == 0 {
		return ""
	}
	var each []string
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		value := strings.ToValidUTF8(s.Labels[name], "�")
		each = append(each, name+`="`+labelEscapes().Replace(value)+`"`)
	}
	return "{" + strings.Join(each, ",") + "}"
}

func helpEscapes() *strings.Replacer  { return strings.NewReplacer(`\`, `\\`, "\n", `\n`) }
func labelEscapes() *strings.Replacer { return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`) }
