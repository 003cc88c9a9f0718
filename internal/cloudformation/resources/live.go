package resources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	ecsdocument "github.com/aws/aws-sdk-go-v2/service/ecs/document"

	"github.com/pintle/pintle/internal/account"
)

// Reader is what a type knows of its resources as they are now. Those of types whose IsReadable is false are neither imported nor checked
// for drift.
type Reader interface {
	// IsReadable reports whether the type can read a resource's properties.
	IsReadable() bool
	// Live returns a resource's properties as they are now, but for those that are only written. What was asked for says in which of
	// several forms a value is written, such as a name or an ARN. Of a resource that isn't there, IsMissing tells by the error.
	Live(ctx context.Context, s Step, id string, asked map[string]any) (map[string]any, error)
	// Identifier names the properties and attributes that tell a resource from others of its type.
	Identifier() []string
	// PhysicalID returns the ID of the resource with an identifier, or "" if the identifier isn't whole.
	PhysicalID(identifier map[string]string) string
	// Identify returns the values that Identifier names of a resource with live properties.
	Identify(ctx context.Context, s Step, id string, live map[string]any) (map[string]string, error)
	// Named returns the properties that an identifier gives.
	Named(identifier map[string]string) map[string]any
	// IsUpdatable reports whether resources of the type can be changed in place.
	IsUpdatable() bool
	// IsListable reports whether the type can list its resources.
	IsListable() bool
	// List returns the IDs of the resources of the type, sorted. Some types list what belongs to another resource, which the properties name.
	List(ctx context.Context, s Step, asked map[string]any) ([]string, error)
	// Written returns properties as CloudFormation's schema writes them, numbers as numbers, without those that are only written.
	Written(properties map[string]any) map[string]any
}

// Other is another resource of the same stack.
type Other struct {
	ID         string
	Properties map[string]any
}

// IsMissing reports whether an error says that a resource isn't there.
func IsMissing(err error) bool { return isMissing(err) }

func (k *resource) IsReadable() bool { return k.live != nil }

func (k *resource) Live(ctx context.Context, s Step, id string, asked map[string]any) (now map[string]any, err error) {
	defer caught(&err)
	if k.live == nil {
		return nil, errors.New("resources of type " + k.name + " can't be read")
	}
	p, err := k.live(ctx, s, id, k.of(asked))
	if err != nil {
		return nil, err
	}
	return k.withoutWriteOnly(encode(reflect.ValueOf(p).Elem(), nil).(map[string]any)), nil
}

func (k *resource) Written(properties map[string]any) map[string]any {
	written, _ := encode(reflect.ValueOf(k.of(properties)).Elem(), properties).(map[string]any)
	return k.withoutWriteOnly(written)
}

func (k *resource) withoutWriteOnly(properties map[string]any) map[string]any {
	for _, p := range propertiesOf(k.properties) {
		if p.writeOnly {
			delete(properties, p.name)
		}
	}
	return properties
}

func (k *resource) IsUpdatable() bool { return k.update != nil }

func (k *resource) IsListable() bool { return k.list != nil }

func (k *resource) List(ctx context.Context, s Step, asked map[string]any) (ids []string, err error) {
	defer caught(&err)
	if k.list == nil {
		return nil, errors.New("resources of type " + k.name + " can't be listed")
	}
	ids, err = k.list(ctx, s, k.of(asked))
	slices.Sort(ids)
	return ids, err
}

func (k *resource) Identifier() []string { return k.identifier }

func (k *resource) PhysicalID(identifier map[string]string) string {
	var values []string
	for _, name := range k.identifier {
		if identifier[name] == "" {
			return ""
		}
		values = append(values, identifier[name])
	}
	switch {
	case k.physical != "":
		return identifier[k.physical]
	case k.ofARN != nil:
		return k.ofARN(values[0])
	}
	return strings.Join(values, "|")
}

func (k *resource) Named(identifier map[string]string) map[string]any {
	named := map[string]any{}
	for _, p := range propertiesOf(k.properties) {
		if value, there := identifier[p.name]; there && slices.Contains(k.identifier, p.name) {
			named[p.name] = value
		}
	}
	return named
}

func (k *resource) Identify(ctx context.Context, s Step, id string, live map[string]any) (map[string]string, error) {
	values := map[string]string{}
	if k.physical == "" && k.ofARN == nil {
		for i, part := range strings.SplitN(id, "|", len(k.identifier)) {
			values[k.identifier[i]] = part
		}
		return values, nil
	}
	made, err := k.Read(ctx, s, id, live)
	if err != nil {
		return nil, err
	}
	for _, name := range k.identifier {
		switch text, isText := live[name].(string); {
		case name == k.physical:
			values[name] = id
		case isText:
			values[name] = text
		default:
			values[name], _ = made.Attributes[name].(string)
		}
	}
	return values, nil
}

// encode is decode the other way round: it returns a property's value as JSON has it, or nil if it's empty. The SDK's structs have numbers and
// Booleans that are zero where nothing was said: those are left out, unless they are in what they are like.
func encode(v reflect.Value, like any) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		if held, isDocument := v.Interface().(ecsdocument.Interface); isDocument {
			return encodeDocument(held)
		}
		if v.Kind() == reflect.Interface {
			return v.Interface()
		}
		return encodePointed(v.Elem(), like)
	case reflect.Struct:
		return encodeStruct(v, like)
	case reflect.Map:
		return encodeMap(v, like)
	case reflect.Slice:
		return encodeList(v, like)
	}
	if v.IsZero() && like == nil {
		return nil
	}
	return encodeScalar(v)
}

func encodeDocument(held ecsdocument.Interface) (out any) {
	text, err := held.MarshalSmithyDocument()
	if err != nil {
		return nil
	}
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber()
	numbers.Decode(&out) //nolint:errcheck // the SDK has written it
	return out
}

// encodePointed encodes what a pointer leads to, which was said even if it's zero.
func encodePointed(v reflect.Value, like any) any {
	if v.Kind() == reflect.Struct {
		return encodeStruct(v, like)
	}
	return encodeScalar(v)
}

func encodeStruct(v reflect.Value, like any) any {
	if at, isTime := v.Interface().(time.Time); isTime {
		return at.UTC().Format(time.RFC3339)
	}
	known, _ := like.(map[string]any)
	out := map[string]any{}
	for _, p := range propertiesOf(v.Type()) {
		name := writtenName(v.Type(), p.name)
		if value := encode(v.FieldByIndex(p.index), known[name]); value != nil {
			out[name] = value
		}
	}
	return out
}

// writtenName returns the name that CloudFormation's schema gives a member of a struct.
func writtenName(of reflect.Type, member string) string {
	if member == "FileSystemId" && of.Name() != "EFSVolumeConfiguration" {
		return member // FSx writes it as the SDK does
	}
	for written, inSDK := range renamed {
		if inSDK == member {
			return written
		}
	}
	return member
}

func encodeMap(v reflect.Value, like any) any {
	if v.Len() == 0 {
		return nil
	}
	known, _ := like.(map[string]any)
	out := map[string]any{}
	for _, key := range v.MapKeys() {
		if value := encode(v.MapIndex(key), known[key.String()]); value != nil {
			out[key.String()] = value
		}
	}
	return out
}

func encodeList(v reflect.Value, like any) any {
	if v.IsNil() {
		return nil
	}
	known, _ := like.([]any)
	out := []any{}
	for i := range v.Len() {
		element := v.Index(i)
		var one any
		if i < len(known) {
			one = known[i]
		}
		if isScalar(element.Kind()) {
			out = append(out, encodeScalar(element))
			continue
		}
		out = append(out, encode(element, one))
	}
	return out
}

func isScalar(k reflect.Kind) bool {
	switch k {
	case reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Map, reflect.Slice:
		return false
	}
	return true
}

func encodeScalar(v reflect.Value) any {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Float64, reflect.Float32:
		return json.Number(strconv.FormatFloat(v.Float(), 'f', -1, v.Type().Bits()))
	}
	return json.Number(strconv.FormatInt(v.Int(), 10))
}

// reshape turns a struct of the SDK's into another with members of the same names, as an answer's is into a request's.
func reshape[To any](from any) (*To, error) {
	text, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	to := new(To)
	return to, json.Unmarshal(text, to)
}

// asGiven returns a value in the form in which it was given, if it's one of those that it has. Otherwise it's in the first.
func asGiven(given *string, forms ...string) *string {
	if given != nil && slices.Contains(forms, *given) {
		return given
	}
	return some(forms[0])
}

// some returns nil for an empty text, which services answer where nothing was said.
func some(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// ownTags returns a service's tags, without those that CloudFormation and AWS itself give.
func ownTags[T any](tags []T, of func(T) (key, value *string)) (own []Tag) {
	for _, t := range tags {
		key, value := of(t)
		if key == nil || account.IsSystemTag(key) {
			continue
		}
		one := Tag{Key: *key}
		if value != nil {
			one.Value = *value
		}
		own = append(own, one)
	}
	return own
}

// ownTagMap is ownTags of a map.
func ownTagMap(tags map[string]string) (own []Tag) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if !account.IsSystemTag(&key) {
			own = append(own, Tag{key, tags[key]})
		}
	}
	return own
}

// parsed returns a document that a service has as text.
func parsed(text *string) any {
	if text == nil || *text == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(*text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return *text
	}
	return v
}

// isNothing reports whether an error says that something isn't set.
func isNothing(err error) bool {
	if isMissing(err) {
		return true
	}
	return slices.ContainsFunc([]string{
		"NoSuchPublicAccessBlockConfiguration", "NoSuchCORSConfiguration", "NoSuchLifecycleConfiguration", "NoSuchTagSet",
	}, func(code string) bool { return hasCode(err, code) })
}

// others returns the stack's other resources of a type.
func (s Step) others(name string) []Other {
	if s.Others == nil {
		return nil
	}
	return s.Others(name)
}

// listed reports whether a property that is a list has a text.
func listed(list any, text string) bool {
	items, _ := list.([]any)
	return slices.ContainsFunc(items, func(item any) bool { return item == text })
}

// maxPages is how many pages of a service's list are read.
const maxPages = 1000

// pages reads a list to its end.
func pages(read func(token *string) (ids []string, next *string, err error)) (all []string, err error) {
	var token *string
	for range maxPages {
		ids, next, err := read(token)
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
		if next == nil || *next == "" {
			break
		}
		token = next
	}
	return all, nil
}
