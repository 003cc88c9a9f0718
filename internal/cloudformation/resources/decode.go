package resources

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	ecsdocument "github.com/aws/aws-sdk-go-v2/service/ecs/document"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// decoder puts evaluated properties into a struct. Like CloudFormation it takes numbers and Booleans that are written as strings, and the
// other way round.
type decoder struct {
	faults  []string
	lenient bool // whether objects may lack what is required of them elsewhere
	strict  bool // whether text and Booleans must be just that
	exists  bool // whether the resource is there, so that what is only written needn't be said again
}

// decode puts properties into a struct; those that aren't known yet stay empty. The faults are worded as those of CloudFormation's schemas.
func decode(properties map[string]any, into reflect.Value) (faults []string) {
	return new(decoder).decode(properties, into)
}

func (d *decoder) decode(properties map[string]any, into reflect.Value) (faults []string) {
	d.object("#", properties, into)
	return d.faults
}

// Decode puts an attribute of a resource, such as its UpdatePolicy, into the struct that a pointer leads to.
func Decode(resource, attribute string, values map[string]any, into any) error {
	faults := decode(values, reflect.ValueOf(into).Elem())
	if len(faults) == 0 {
		return nil
	}
	return template.Errorf("Validation of the %s of resource %s failed with message:\n%s", attribute, resource, strings.Join(faults, "\n"))
}

func (d *decoder) fault(path, format string, args ...any) {
	d.faults = append(d.faults, path+": "+fmt.Sprintf(format, args...))
}

// property is what a field's tag says: `cfn:"required,create"`.
type property struct {
	name       string
	index      []int
	required   bool
	createOnly bool
	writeOnly  bool // no call tells what it is
	lenient    bool // its tags need neither key nor value, as ECS's
}

// propertiesOf lists the properties that a struct has, by itself or in structs that it embeds. Fields of the SDK's structs have no tags.
func propertiesOf(t reflect.Type) []property {
	var list []property
	for _, f := range reflect.VisibleFields(t) {
		if !f.IsExported() || f.Anonymous || f.Name == "ResultMetadata" {
			continue
		}
		tag := strings.Split(f.Tag.Get("cfn"), ",")
		list = append(list, property{
			name:       f.Name,
			index:      f.Index,
			required:   slices.Contains(tag, "required"),
			createOnly: slices.Contains(tag, "create"),
			writeOnly:  slices.Contains(tag, "write"),
			lenient:    slices.Contains(tag, "lenient"),
		})
	}
	return list
}

// renamed are members whose names differ between CloudFormation's schemas and the SDK.
var renamed = map[string]string{
	"EFSVolumeConfiguration":                  "EfsVolumeConfiguration",
	"FSxWindowsFileServerVolumeConfiguration": "FsxWindowsFileServerVolumeConfiguration",
	"FilesystemId":                            "FileSystemId",
	"MetricTimeZone":                          "MetricTimezone",
}

func (d *decoder) object(path string, from map[string]any, to reflect.Value) {
	list := propertiesOf(to.Type())
	for _, name := range slices.Sorted(maps.Keys(from)) {
		i := slices.IndexFunc(list, func(p property) bool { return p.name == name || p.name == renamed[name] })
		if i < 0 {
			d.fault(path, "extraneous key [%s] is not permitted", name)
			continue
		}
		was := d.lenient
		d.lenient = was || list[i].lenient
		d.value(path+"/"+name, from[name], to.FieldByIndex(list[i].index))
		d.lenient = was
	}
	for _, p := range list {
		if _, there := from[p.name]; p.required && !there && !d.lenient && !(d.exists && p.writeOnly) {
			d.fault(path, "required key [%s] not found", p.name)
		}
	}
}

// value puts a value into a field.
func (d *decoder) value(path string, from any, to reflect.Value) {
	if _, unknown := from.(template.Unknown); unknown {
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		d.value(path, from, to.Elem())
	case reflect.Interface:
		d.any(path, from, to)
	case reflect.Struct:
		if at, ok := to.Addr().Interface().(*time.Time); ok {
			d.time(path, from, at)
			return
		}
		if object, ok := from.(map[string]any); ok {
			d.object(path, object, to)
			return
		}
		d.mistyped(path, "JSONObject", from)
	case reflect.Map:
		d.mapping(path, from, to)
	case reflect.Slice:
		d.list(path, from, to)
	default:
		d.scalar(path, from, to)
	}
}

// any puts a value into a field that takes any, or a document of ECS's. The SDK's unions take only its own types; Pintle uses none of them.
func (d *decoder) any(path string, from any, to reflect.Value) {
	switch value := reflect.ValueOf(from); {
	case !value.IsValid():
	case to.Type() == reflect.TypeFor[ecsdocument.Interface]():
		text, _ := json.Marshal(from) //nolint:errcheck // it came from JSON
		held, err := state.Document(text)
		if err != nil {
			d.fault(path, "%v", err)
			return
		}
		to.Set(reflect.ValueOf(held))
	case value.Type().AssignableTo(to.Type()):
		to.Set(value)
	default:
		d.fault(path, "Pintle does not support this property")
	}
}

// time reads a time as ISO 8601 writes it, such as 2026-06-01T00:00:00Z. Without a zone, as anomaly detectors have it, it's UTC.
func (d *decoder) time(path string, from any, to *time.Time) {
	text, _ := template.Text(from)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04:05", text)
	}
	if *to = at; err != nil {
		d.fault(path, "expected an ISO 8601 time such as 2026-06-01T00:00:00Z, found: %s", text)
	}
}

func (d *decoder) mapping(path string, from any, to reflect.Value) {
	object, ok := from.(map[string]any)
	if !ok {
		d.mistyped(path, "JSONObject", from)
		return
	}
	to.Set(reflect.MakeMapWithSize(to.Type(), len(object)))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		element := reflect.New(to.Type().Elem()).Elem()
		d.value(path+"/"+key, object[key], element)
		to.SetMapIndex(reflect.ValueOf(key).Convert(to.Type().Key()), element)
	}
}

func (d *decoder) list(path string, from any, to reflect.Value) {
	items, ok := from.([]any)
	if !ok {
		d.mistyped(path, "JSONArray", from)
		return
	}
	to.Set(reflect.MakeSlice(to.Type(), len(items), len(items)))
	for i, item := range items {
		d.value(path+"/"+strconv.Itoa(i), item, to.Index(i))
	}
}

func (d *decoder) scalar(path string, from any, to reflect.Value) {
	text, ok := template.Text(from)
	ok = ok && (!d.strict || isItself(from, to.Kind()))
	switch to.Kind() {
	case reflect.String:
		if to.SetString(text); !ok {
			d.mistyped(path, "String", from)
		}
	case reflect.Bool:
		is, err := strconv.ParseBool(strings.ToLower(text))
		if to.SetBool(is); !ok || err != nil {
			d.mistyped(path, "Boolean", from)
		}
	case reflect.Int32, reflect.Int64, reflect.Int:
		n, err := strconv.ParseInt(strings.TrimSuffix(text, ".0"), 10, to.Type().Bits())
		if to.SetInt(n); !ok || err != nil {
			d.mistyped(path, "Integer", from)
		}
	case reflect.Float64, reflect.Float32:
		n, err := strconv.ParseFloat(text, 64)
		if to.SetFloat(n); !ok || err != nil {
			d.mistyped(path, "Number", from)
		}
	default:
		panic("a property of type " + to.Type().String()) // a mistake in a type's definition, which its tests meet
	}
}

// isItself reports whether a scalar is of a field's type as it's written. Numbers may be text: some are in CloudFormation's schemas, such as a
// group's MinSize, and aren't in the SDK's structs.
func isItself(from any, kind reflect.Kind) bool {
	_, isText := from.(string)
	_, isBoolean := from.(bool)
	switch kind {
	case reflect.String:
		return isText
	case reflect.Bool:
		return isBoolean
	}
	return !isBoolean
}

func (d *decoder) mistyped(path, want string, from any) {
	found := "JSONObject"
	switch from.(type) {
	case []any:
		found = "JSONArray"
	case string:
		found = "String"
	case bool:
		found = "Boolean"
	case json.Number:
		found = "Number"
	}
	d.fault(path, "expected type: %s, found: %s", want, found)
}
