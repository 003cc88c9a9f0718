// Package resources has CloudFormation's resource types, each in a file of its own: its properties, what a change of each of them means,
// and the calls that create, read, update and delete a resource. The calls are those that any client would make. Which resource is to be
// made when, and what has been made, is for package stacks to know.
package resources

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/wire/call"
)

// Type is a resource type. Its methods may be called from any goroutine.
type Type struct {
	Name       string
	Attributes []string // that Fn::GetAtt gets
	properties reflect.Type
	actions
}

// Step is one resource of one stack, for the calls that its type makes.
type Step struct {
	Services call.Caller
	Account  account.Account
	Stack    string // the stack's name
	StackID  string
	Name     string // the logical ID
	// Token is the resource's own. A creation that is repeated after a crash has the first one's.
	Token string
	// Since is when an earlier process began to make the resource, which may have been made; zero if none did.
	Since time.Time
	// Former has the physical IDs of the resources whose place this one takes.
	Former []string
}

// Made is what is known of a resource that is there.
type Made struct {
	Ref        string         // what Ref returns; "" is the physical ID
	Attributes map[string]any // strings, and lists of them as []any
}

// kind is a resource type whose properties are a P. Of a resource that isn't there, its functions return the error of the service that says
// so.
type kind[P any] struct {
	name       string
	attributes []string
	// id returns the physical ID, if that is known before the resource is made. What has it already belongs to somebody else.
	id     func(s Step, p *P) string
	create func(ctx context.Context, s Step, p *P) (id string, err error)
	// update changes a resource in place. Without it, a new one takes the place of a resource of which anything changes.
	update func(ctx context.Context, s Step, id string, before, after *P) error
	delete func(ctx context.Context, s Step, id string, p *P) error
	// read returns what is known of a resource. Without it, that is its ID.
	read func(ctx context.Context, s Step, id string, p *P) (Made, error)
	// settled reports whether a resource that was created or updated has become what it is to be. Without it, it has at once.
	settled func(ctx context.Context, s Step, id string, p *P) (bool, error)
}

// actions are a kind's functions with properties as JSON values.
type actions struct {
	id        func(s Step, properties map[string]any) string
	create    func(ctx context.Context, s Step, properties map[string]any) (string, error)
	update    func(ctx context.Context, s Step, id string, before, after map[string]any) error
	delete    func(ctx context.Context, s Step, id string, properties map[string]any) error
	read      func(ctx context.Context, s Step, id string, properties map[string]any) (Made, error)
	settled   func(ctx context.Context, s Step, id string, properties map[string]any) (bool, error)
	updatable bool
}

// known are all types by name. Their files add them.
var known = map[string]*Type{}

// add adds a type to those that there are.
func add[P any](k kind[P]) *Type {
	t := &Type{Name: k.name, Attributes: k.attributes, properties: reflect.TypeFor[P](), actions: k.actions()}
	known[k.name] = t
	return t
}

// actions returns the kind's functions for properties as JSON values, which were checked before.
func (k kind[P]) actions() actions {
	a := actions{
		updatable: k.update != nil,
		create: func(ctx context.Context, s Step, properties map[string]any) (string, error) {
			return k.create(ctx, s, of[P](properties))
		},
		delete: func(ctx context.Context, s Step, id string, properties map[string]any) error {
			return k.delete(ctx, s, id, of[P](properties))
		},
	}
	if k.id != nil {
		a.id = func(s Step, properties map[string]any) string { return k.id(s, of[P](properties)) }
	}
	if k.update != nil {
		a.update = func(ctx context.Context, s Step, id string, before, after map[string]any) error {
			return k.update(ctx, s, id, of[P](before), of[P](after))
		}
	}
	if k.read != nil {
		a.read = func(ctx context.Context, s Step, id string, properties map[string]any) (Made, error) {
			return k.read(ctx, s, id, of[P](properties))
		}
	}
	if k.settled != nil {
		a.settled = func(ctx context.Context, s Step, id string, properties map[string]any) (bool, error) {
			return k.settled(ctx, s, id, of[P](properties))
		}
	}
	return a
}

func of[P any](properties map[string]any) *P {
	p := new(P)
	decode(properties, reflect.ValueOf(p).Elem())
	return p
}

// Lookup returns the type with a name, or nil.
func Lookup(name string) *Type { return known[name] }

// Names lists all types.
func Names() []string { return sorted(known) }

// Check checks a resource's properties, some of which may be template.Unknown. The error is worded as CloudFormation's.
func (t *Type) Check(resource string, properties map[string]any) error {
	faults, _ := decode(properties, reflect.New(t.properties).Elem())
	if len(faults) == 0 {
		return nil
	}
	return template.Errorf("Properties validation failed for resource %s with message:\n%s", resource, strings.Join(faults, "\n"))
}

// HasTags reports whether the type has tags in a list, which a stack's own tags join.
func (t *Type) HasTags() bool {
	f, has := t.properties.FieldByName("Tags")
	return has && f.Type == reflect.TypeFor[[]Tag]()
}

// Change is a property that changes.
type Change struct {
	Name     string
	Replaces bool // whether a new resource takes the old one's place
}

// Changes compares two states of a resource's properties.
func (t *Type) Changes(before, after map[string]any) (changes []Change) {
	a, b := reflect.New(t.properties).Elem(), reflect.New(t.properties).Elem()
	decode(before, a)
	decode(after, b)
	for _, p := range propertiesOf(t.properties) {
		if !reflect.DeepEqual(a.Field(p.index).Interface(), b.Field(p.index).Interface()) {
			changes = append(changes, Change{p.name, p.createOnly || !t.updatable})
		}
	}
	return changes
}

// IsReplacement reports whether changes make a new resource.
func IsReplacement(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Replaces })
}

// ID returns the physical ID that a resource will have, or "" if that is known only once it's made.
func (t *Type) ID(s Step, properties map[string]any) string {
	if t.id == nil {
		return ""
	}
	return t.id(s, properties)
}

// Exists reports whether there is a resource with an ID.
func (t *Type) Exists(ctx context.Context, s Step, id string, properties map[string]any) (bool, error) {
	if t.read == nil {
		return false, nil
	}
	_, err := t.read(ctx, s, id, properties)
	if isMissing(err) {
		return false, nil
	}
	return err == nil, err
}

// Create makes a resource and returns its ID.
func (t *Type) Create(ctx context.Context, s Step, properties map[string]any) (id string, err error) {
	return t.create(ctx, s, properties)
}

// Complete finishes a resource that somebody was killed over while making it, perhaps in the middle of several calls.
func (t *Type) Complete(ctx context.Context, s Step, id string, properties map[string]any) error {
	if !t.updatable {
		return nil
	}
	return t.update(ctx, s, id, map[string]any{}, properties)
}

// Read returns what is known of a resource.
func (t *Type) Read(ctx context.Context, s Step, id string, properties map[string]any) (Made, error) {
	if t.read == nil {
		return Made{Ref: id}, nil
	}
	made, err := t.read(ctx, s, id, properties)
	if made.Ref == "" {
		made.Ref = id
	}
	return made, err
}

// Update changes a resource in place.
func (t *Type) Update(ctx context.Context, s Step, id string, before, after map[string]any) error {
	return t.update(ctx, s, id, before, after)
}

// Settled reports whether a resource that was created or updated has become what it's to be.
func (t *Type) Settled(ctx context.Context, s Step, id string, properties map[string]any) (bool, error) {
	if t.settled == nil {
		return true, nil
	}
	return t.settled(ctx, s, id, properties)
}

// Delete deletes a resource. That it's gone already is success.
func (t *Type) Delete(ctx context.Context, s Step, id string, properties map[string]any) error {
	if err := t.delete(ctx, s, id, properties); !isMissing(err) {
		return err
	}
	return nil
}

// ErrPending is returned by Delete for a resource that isn't gone yet: it's to be called again.
var ErrPending = errors.New("the resource is being deleted")

// errMissing is for resources whose service has no error that says that one isn't there.
var errMissing = errors.New("the resource is not there")

// isMissing reports whether an error says that the resource isn't there.
func isMissing(err error) bool {
	var refused smithy.APIError
	if !errors.As(err, &refused) {
		return errors.Is(err, errMissing)
	}
	code := refused.ErrorCode()
	return strings.HasSuffix(code, "NotFound") || strings.HasSuffix(code, "NotFoundException") || strings.HasSuffix(code, "DoesNotExist") ||
		slices.Contains([]string{
			"NoSuchBucket", "NoSuchBucketPolicy", "NoSuchEntity", "AWS.SimpleQueueService.NonExistentQueue", "ResourceNotFound",
		}, code)
}

// Tag is a tag as most types have it.
type Tag struct{ Key, Value string }

// generated returns the name of a resource whose template gives none: STACK-NAME-RANDOM, cut to a length.
func (s Step) generated(length int) string {
	random := s.random()
	stack, name := s.Stack, s.Name
	room := length - len(random) - 2
	if over := len(stack) + len(name) - room; over > 0 {
		cut := min(over, max(len(name)-room/2, 0))
		name = name[:len(name)-cut]
		stack = stack[:min(len(stack), room-len(name))]
	}
	return stack + "-" + name + "-" + random
}

// random returns letters and digits that are this resource's own.
func (s Step) random() string {
	sum := sha256.Sum256([]byte(s.StackID + s.Name + s.Token))
	return base32.StdEncoding.EncodeToString(sum[:])[:12]
}

// named returns a name that the template gives, or a generated one.
func (s Step) named(given *string, length int) string {
	if given != nil && *given != "" {
		return *given
	}
	return s.generated(length)
}

// document returns a JSON document, such as a policy, which templates write as an object or as text.
func document(v any) *string {
	if v == nil {
		return nil
	}
	if text, ok := v.(string); ok {
		return &text
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil // it came from JSON
	}
	return new(strings.TrimSuffix(out.String(), "\n"))
}

// tagMap returns tags as the services take them that have a map.
func tagMap(tags []Tag) map[string]string {
	if len(tags) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, t := range tags {
		out[t.Key] = t.Value
	}
	return out
}

// tagList returns tags as a service's own.
func tagList[T any](tags []Tag, of func(key, value *string) T) []T {
	var out []T
	for _, t := range tags {
		out = append(out, of(&t.Key, &t.Value))
	}
	return out
}

// removed returns the keys of the tags that aren't there any more.
func removed(before, after []Tag) (keys []string) {
	for _, t := range before {
		if !slices.ContainsFunc(after, func(n Tag) bool { return n.Key == t.Key }) {
			keys = append(keys, t.Key)
		}
	}
	return keys
}
