package explore

import (
	"reflect"
	"time"
	"unsafe"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// digester hashes everything that can be reached from a value: numbers, texts (with labelled tokens),
// times, and the targets of pointers and interfaces. It rounds durations to a tenth of a second, because
// they include real time of this machine.
//
// Of a function it hashes only its identity: captured variables must be reachable otherwise, or equal
// everywhere. Of an open file it hashes the client's view; it follows neither the actor nor the world.
// followed, nor is the world.
type digester struct {
	world *World
	sum   simnfs.Sum
	met   map[reach]uint64
}

// reach is the target of a pointer. The first field of a struct has the same address as the struct.
type reach struct {
	at   unsafe.Pointer
	kind reflect.Type
}

var (
	spanType    = reflect.TypeFor[time.Duration]()
	momentType  = reflect.TypeFor[time.Time]()
	instantType = reflect.TypeFor[boottime.Instant]()
	turnType    = reflect.TypeFor[bounded.Turn]()
	clockType   = reflect.TypeFor[source.Clock]()
)

func (d *digester) add(v reflect.Value) {
	if v.Type() == spanType {
		d.sum.Add(uint64(time.Duration(v.Int()).Round(100 * time.Millisecond))) //nolint:gosec // a hash
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		d.mark(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.sum.Add(uint64(v.Int())) //nolint:gosec // a hash
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		d.sum.Add(v.Uint())
	case reflect.String:
		d.sum.AddText(d.world.labelled(v.String()))
	case reflect.Pointer:
		d.follow(v)
	case reflect.Interface:
		d.mark(!v.IsNil())
		if !v.IsNil() {
			d.sum.Add(uint64(reflect.ValueOf(v.Elem().Type()).Pointer()))
			d.add(v.Elem())
		}
	case reflect.Struct:
		d.addStruct(v)
	case reflect.Slice, reflect.Array:
		d.addList(v)
	case reflect.Map:
		d.addMap(v)
	case reflect.Func:
		d.sum.Add(uint64(v.Pointer()))
	default:
		d.mark(!v.IsZero()) // whether a channel exists
	}
}

func (d *digester) mark(is bool) {
	if is {
		d.sum.Add(1)
	} else {
		d.sum.Add(0)
	}
}

func (d *digester) follow(v reflect.Value) {
	d.mark(!v.IsNil())
	if v.IsNil() {
		return
	}
	at := v.UnsafePointer()
	switch v.Type() {
	case reflect.TypeFor[*Actor](), reflect.TypeFor[*World]():
		return
	case reflect.TypeFor[*observed]():
		d.addOpen((*observed)(at).Dir)
		return
	case reflect.TypeFor[*observedFile]():
		d.addOpen((*observedFile)(at).File)
		return
	}
	key := reach{at, v.Type()}
	number, known := d.met[key]
	if !known {
		number = uint64(len(d.met))
		d.met[key] = number
	}
	d.sum.Add(number)
	if !known {
		d.add(v.Elem())
	}
}

func (d *digester) addOpen(opened any) {
	state, known := simnfs.StateOf(opened)
	d.mark(known)
	d.sum.Add(uint64(state))
}

func (d *digester) addStruct(v reflect.Value) {
	switch v.Type() {
	case momentType:
		d.addMoment(v)
		return
	case instantType: // the other clock is the machine's own, or redundant
		d.addMoment(v.Field(0))
		return
	case turnType: // the number of turns is ignored, but not whether it is held
		d.mark(v.FieldByName("came").Int() != v.FieldByName("ended").Int())
		return
	case clockType: // an expired reading is like none
		if d.world.relative && time.Since(timeOf(v.FieldByName("end").Field(0))) >= source.ClockCarried {
			return
		}
	}
	for _, i := range d.world.scenario.fieldsOf(v.Type(), d.world.relative) {
		d.add(v.Field(i))
	}
}

// fieldsOf returns the fields that influence decisions, without those that are only displayed.
func (sc *Scenario) fieldsOf(t reflect.Type, relative bool) []int {
	if known, ok := sc.fields.Load(t); ok {
		return known.([]int)
	}
	var fields []int
	for i := range t.NumField() {
		switch name := t.Field(i).Name; {
		case name == "assessment", relative && (name == "Prepared" || name == "taken"):
		default:
			fields = append(fields, i)
		}
	}
	sc.fields.Store(t, fields)
	return fields
}

func (d *digester) addMoment(v reflect.Value) { d.world.view().Time(&d.sum, timeOf(v)) }

// timeOf returns a time, assembled from its parts if it is unexported.
func timeOf(v reflect.Value) time.Time {
	if v.CanInterface() {
		return v.Interface().(time.Time)
	}
	parts := struct {
		wall uint64
		ext  int64
		zone *time.Location
	}{v.Field(0).Uint(), v.Field(1).Int(), nil}
	return *(*time.Time)(unsafe.Pointer(&parts))
}

func (d *digester) addList(v reflect.Value) {
	d.sum.Add(uint64(v.Len())) //nolint:gosec // a hash
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		d.sum.AddText(d.world.labelled(string(v.Bytes())))
		return
	}
	for i := range v.Len() {
		d.add(v.Index(i))
	}
}

// addMap adds entries in any order.
func (d *digester) addMap(v reflect.Value) {
	var all simnfs.Sum
	whole := d.sum
	for entries := v.MapRange(); entries.Next(); {
		d.sum = 0
		d.add(entries.Key())
		d.add(entries.Value())
		all += d.sum
	}
	d.sum = whole
	d.sum.Add(uint64(v.Len())) //nolint:gosec // a hash
	d.sum.Add(uint64(all))
}
