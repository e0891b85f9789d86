package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/multilock/go/multilock/source"
)

// Lossless returns a value as JSON whose texts may contain any bytes. A byte that is not UTF-8 becomes
// the escape of a lone surrogate, \udc80 to \udcff, like Python's surrogateescape: os.fsencode of a
// text from json.loads returns the bytes. The indent may be empty.
func Lossless(value any, indent string) ([]byte, error) {
	marshal := func(value any) ([]byte, error) {
		if indent != "" {
			return json.MarshalIndent(value, "", indent)
		}
		return json.Marshal(value)
	}
	text, err := marshal(value)
	if err != nil || !bytes.Contains(text, []byte(`\ufffd`)) { // package json's replacement for such a byte
		return text, err
	}
	if text, err = marshal(MapTexts(value, source.EncodeName)); err != nil {
		return nil, err
	}
	var out []byte
	for _, r := range string(text) {
		if source.IsRawByte(r) {
			out = fmt.Appendf(out, `\udc%02x`, source.RawByte(r))
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out, nil
}

// MapTexts returns a copy of a value with each of its texts changed.
func MapTexts[T any](value T, change func(string) string) T {
	mapTexts(reflect.ValueOf(&value).Elem(), change)
	return value
}

// mapTexts does so in place. It copies what pointers, slices and maps refer to before changing it.
func mapTexts(v reflect.Value, change func(string) string) {
	if k := v.Kind(); (k == reflect.Pointer || k == reflect.Interface || k == reflect.Slice || k == reflect.Map) && v.IsNil() {
		return
	}
	fresh := func(from reflect.Value) reflect.Value {
		to := reflect.New(from.Type()).Elem()
		to.Set(from)
		mapTexts(to, change)
		return to
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(change(v.String()))
	case reflect.Pointer:
		v.Set(fresh(v.Elem()).Addr())
	case reflect.Interface:
		v.Set(fresh(v.Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() || field.Anonymous && field.Type.Kind() == reflect.Struct {
				mapTexts(v.Field(i), change)
			}
		}
	case reflect.Slice:
		to := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(to, v)
		v.Set(to)
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			mapTexts(v.Index(i), change)
		}
	case reflect.Map:
		to := reflect.MakeMapWithSize(v.Type(), v.Len())
		for key, value := range v.Seq2() {
			to.SetMapIndex(fresh(key), fresh(value))
		}
		v.Set(to)
	default: // no text
	}
}
