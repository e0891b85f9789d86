package command

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/report"
)

// described lists the schemas and the types that they describe, in the order of the documentation.
var described = []struct {
	schema string
	value  any
}{
	{"message", console.Message{}},
	{"status", statusReport{}}, {"status-all", allReport{}},
	{"run", runReport{}}, {"acquire", acquireReport{}}, {"release", releaseReport{}}, {"break", breakReport{}},
	{"batch", batchView{}}, {"wait", waitView{}}, {"logs", loggedJob{}}, {"history", show.Event{}}, {"overdue", overdueReport{}}, {"report", report.Timeline{}},
	{"clean", cleanReport{}}, {"clean-results", forgetReport{}}, {"clean-history", shortenReport{}}, {"clean-captured", uncaptureReport{}},
	{"doctor", DoctorReport{}}, {"config", configReport{}}, {"version", Build{}},
}

// schema is the part of JSON Schema that docs/schema uses.
type schema struct {
	Ref         string             `json:"$ref"`
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Type        types              `json:"type"`
	Enum        []string           `json:"enum"`
	Properties  properties         `json:"properties"`
	Required    []string           `json:"required"`
	Additional  *bool              `json:"additionalProperties"`
	Items       *schema            `json:"items"`
	AnyOf       []*schema          `json:"anyOf"`
	Examples    []json.RawMessage  `json:"examples"`
	Defs        map[string]*schema `json:"$defs"`
}

// types are the types of a value; a single type is not in a list.
type types []string

func (t *types) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]string)(t))
	}
	*t = types{""}
	return json.Unmarshal(text, &(*t)[0])
}

// properties keep their order.
type properties []property

type property struct {
	name string
	*schema
}

func (p *properties) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	_, err := d.Token()
	for err == nil && d.More() {
		var name json.Token
		if name, err = d.Token(); err != nil {
			break
		}
		one := property{name.(string), &schema{}} //nolint:forcetypeassert // keys are strings
		err = d.Decode(one.schema)
		*p = append(*p, one)
	}
	return err
}

func readSchema(t *testing.T, name string) *schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "schema", name+".json"))
	require.NoError(t, err)
	s := &schema{}
	require.NoError(t, json.Unmarshal(text, s), name)
	return s
}

// matcher compares Go types with schemas.
type matcher struct {
	*testing.T
	defs map[string]*schema
	// kinds maps field names to their types.
	kinds map[string]string
}

// Each schema has the fields that are printed, with the same types, no others, and a description of each. A
// field name has the same type, and so the same meaning, in all schemas.
func TestSchemasHaveTheFieldsThatArePrinted(t *testing.T) {
	t.Parallel()
	m := matcher{t, readSchema(t, "common").Defs, map[string]string{}}
	for _, one := range described {
		s := readSchema(t, one.schema)
		require.Equal(t, "schema", s.Properties[0].name, one.schema)
		s.Properties, s.Required = s.Properties[1:], slices.DeleteFunc(s.Required, func(name string) bool { return name == "schema" })
		m.object(one.schema, reflect.TypeOf(one.value), s)
	}
}

// field is a field of a JSON object.
type field struct {
	reflect.Type
	optional bool
}

// fieldsOf adds the fields of a struct, including those of embedded structs; outer fields hide inner ones.
func fieldsOf(of reflect.Type, found map[string]field) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			inner := map[string]field{}
			fieldsOf(f.Type, inner)
			maps.Copy(inner, found)
			maps.Copy(found, inner)
		} else if name != "" && name != "-" {
			found[name] = field{f.Type, tagged && strings.HasPrefix(options, "omit")}
		}
	}
}

func (m matcher) object(at string, of reflect.Type, s *schema) {
	found := map[string]field{}
	fieldsOf(of, found)
	require.NotNil(m, s.Additional, at)
	require.False(m, *s.Additional, at)
	var named, required []string
	for name, f := range found {
		named = append(named, name)
		if !f.optional {
			required = append(required, name)
		}
	}
	var inSchema []string
	for _, p := range s.Properties {
		inSchema = append(inSchema, p.name)
	}
	require.ElementsMatch(m, named, inSchema, at)
	require.ElementsMatch(m, required, s.Required, at)
	for _, p := range s.Properties {
		require.NotEmpty(m, p.Description, "%s.%s", at, p.name)
		for _, value := range p.Enum {
			require.Contains(m, p.Description, "`"+value+"`", "%s.%s", at, p.name)
			require.NotContains(m, value, " ", "%s.%s", at, p.name)
		}
		m.value(at+"."+p.name, found[p.name], p.schema)
		kind := p.coarse()
		if known, ok := m.kinds[p.name]; ok {
			require.Equal(m, known, kind, "%s.%s", at, p.name)
		}
		m.kinds[p.name] = kind
	}
}

func (m matcher) value(at string, f field, s *schema) {
	of := f.Type
	if of.Kind() == reflect.Pointer {
		require.Equal(m, !f.optional, s.nullable(), at)
		of = of.Elem()
	}
	s = s.some()
	if name, ok := strings.CutPrefix(s.Ref, "common.json#/$defs/"); ok && name != "time" {
		require.Contains(m, m.defs, name, at)
		s = m.defs[name]
	}
	switch kind := of.Kind(); {
	case of == reflect.TypeFor[time.Time]():
		require.Equal(m, "common.json#/$defs/time", s.Ref, at)
	case kind == reflect.Interface: // the lock in a message
		require.Equal(m, "lock", s.Title, at)
	case kind == reflect.Struct:
		m.object(at, of, s)
	case kind == reflect.Slice:
		m.value(at+"[]", field{Type: of.Elem()}, s.Items)
	case s.Ref != "": // a time as text
		require.Equal(m, reflect.String, kind, at)
	default:
		words := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer", reflect.Uint64: "integer", reflect.Float64: "number"}
		if s.Enum == nil {
			require.Equal(m, words[kind], s.Type[0], at)
		} else {
			require.Equal(m, reflect.String, kind, at)
		}
	}
}

func (s *schema) nullable() bool {
	return len(s.AnyOf) > 0 || slices.Contains(s.Type, "null")
}

// coarse returns the kind of a value, the same for all objects.
func (s *schema) coarse() string {
	kind, _, _ := strings.Cut(s.kind(), " or ")
	if list, what, _ := strings.Cut(kind, "["); what != "" {
		return list + "object"
	}
	return kind
}

// some returns the schema for a value that is not null.
func (s *schema) some() *schema {
	if len(s.AnyOf) > 0 {
		return s.AnyOf[0]
	}
	return s
}

// kind returns the type of a value for the documentation.
func (s *schema) kind() string {
	var kind string
	of := s.some()
	switch name := strings.TrimPrefix(of.Ref, "common.json#/$defs/"); {
	case name == "time":
		kind = "time"
	case name != "":
		kind = fmt.Sprintf("[%s](#%s)", name, name)
	case of.Enum != nil:
		kind = "string"
	case of.Items != nil:
		kind = "array of " + of.Items.kind()
	default:
		kind = of.Type[0]
	}
	if s.nullable() {
		kind += " or null"
	}
	return kind
}

var updateDocs = flag.Bool("update", false, "rewrite docs/json.md from docs/schema")

const (
	docsJSON = "../../../../docs/json.md"
	// generated begins what is made from the schemas. Above it is text.
	generated = "<!-- Made from schema/*.json. To make it anew: go test ./cmd/multilock/internal/command -run JSON -update -->\n"
)

// docs/json.md has the descriptions of the schemas.
func TestJSONIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(docsJSON)
	require.NoError(t, err)
	introduction, _, found := strings.Cut(string(text), generated)
	require.True(t, found, "%s is in %s", generated, docsJSON)
	var w strings.Builder
	w.WriteString(introduction + generated)
	for _, one := range described {
		writeSchema(t, &w, "## ", readSchema(t, one.schema))
	}
	w.WriteString("\n## Objects in several of them\n")
	defs := readSchema(t, "common").Defs
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		if defs[name].Title != "" {
			writeSchema(t, &w, "### ", defs[name])
		}
	}
	if *updateDocs {
		require.NoError(t, os.WriteFile(docsJSON, []byte(w.String()), 0o644)) //nolint:gosec // a document
	}
	require.Equal(t, w.String(), string(text), "make it with -update")
}

func writeSchema(t *testing.T, w *strings.Builder, heading string, s *schema) {
	t.Helper()
	w.WriteString("\n" + heading + s.Title + "\n\n" + wrapped("", s.Description) + "\n")
	writeProperties(w, "", s)
	for _, example := range s.Examples {
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, example))
		w.WriteString("\n")
		for line := range strings.Lines(folded(compact.String())) {
			w.WriteString("    " + line)
		}
	}
}

func writeProperties(w *strings.Builder, indent string, s *schema) {
	for _, p := range s.Properties {
		if p.name == "schema" {
			continue
		}
		kind := p.kind()
		if !slices.Contains(s.Required, p.name) {
			kind += ", optional"
		}
		w.WriteString(wrapped(indent+"  ", fmt.Sprintf("%s- `%s` (%s): %s", indent, p.name, kind, p.Description)))
		for inner := p.some(); inner != nil; inner = inner.Items {
			writeProperties(w, indent+"  ", inner)
		}
	}
}

const docsWidth = 110

// wrapped breaks a text into lines, and indents all but the first.
func wrapped(indent, text string) string {
	first := text[:len(text)-len(strings.TrimLeft(text, " "))]
	var all strings.Builder
	line := first
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line+" "+word) > docsWidth:
			all.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	return all.String() + line + "\n"
}

// folded breaks compact JSON into lines, after commas outside of strings.
func folded(text string) string {
	const width = docsWidth - 4
	var all strings.Builder
	line, start, quoted := "", 0, false
	for i := range len(text) {
		switch {
		case text[i] == '"' && (i == 0 || text[i-1] != '\\'):
			quoted = !quoted
		case text[i] == ',' && !quoted, i == len(text)-1:
			part := text[start : i+1]
			if start = i + 1; len(line)+len(part) > width && line != "" {
				all.WriteString(line + "\n")
				line = " "
			}
			line += part
		}
	}
	return all.String() + line + "\n"
}
