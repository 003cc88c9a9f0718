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
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/plan"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Type is a resource type. Properties are JSON values, some of which may be template.Unknown where nothing is called. The methods may be
// called from any goroutine.
type Type interface {
	// Check checks a resource's properties. The error is worded as CloudFormation's.
	Check(resource string, properties map[string]any) error
	// CheckDesired names what is wrong with a desired state. Cloud Control doesn't take a Boolean for text, or the other way round, as
	// CloudFormation does. Of a resource that exists, what is only written needn't be said again.
	CheckDesired(properties map[string]any, exists bool) (faults []string)
	// Attributes are the names that Fn::GetAtt gets. One such as Outputs.* stands for all that begin so.
	Attributes() []string
	// After are the types whose resources are made before this type's, and deleted after them, though no reference may lead to them.
	After() []string
	// HasTags reports whether the type has tags in a list, which a stack's own tags join.
	HasTags() bool
	// Changes compares two states of a resource's properties.
	Changes(before, after map[string]any) []plan.Change

	// ID returns the physical ID that a resource will have, or "" if that is known only once it's made.
	ID(s Step, properties map[string]any) string
	// Exists reports whether there is a resource with an ID.
	Exists(ctx context.Context, s Step, id string, properties map[string]any) (bool, error)
	// Create makes a resource and returns its ID.
	Create(ctx context.Context, s Step, properties map[string]any) (id string, err error)
	// Complete finishes a resource that somebody was killed over while making it, perhaps in the middle of several calls.
	Complete(ctx context.Context, s Step, id string, properties map[string]any) error
	// Update changes a resource in place.
	Update(ctx context.Context, s Step, id string, before, after map[string]any) error
	// Settled reports whether a resource that was created or updated has become what it's to be.
	Settled(ctx context.Context, s Step, id string, properties map[string]any) (bool, error)
	Reader
	// Read returns what is known of a resource.
	Read(ctx context.Context, s Step, id string, properties map[string]any) (Made, error)
	// Delete deletes a resource. That it's gone already is success.
	Delete(ctx context.Context, s Step, id string, properties map[string]any) error
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
	// Since is when an earlier process began to make the resource, which may have been made; zero if none did. For a deletion it's when that
	// began.
	Since time.Time
	// Back is whether an update is being rolled back, and NoRollback whether the stack stays as a failure leaves it.
	Back, NoRollback bool
	// Keep keeps an attribute that is told only as the resource is created, and that isn't to be shown. It's nil where there is no stack.
	Keep func(attribute, secret string)
	// Capabilities are those that the stack's caller has acknowledged.
	Capabilities []types.Capability
	// Depth is how many stacks the stack is in, with itself.
	Depth func() int
	// Former has the physical IDs of the resources whose place this one takes.
	Former []string
	// HandleURL makes the URL to which a wait condition's signals are sent, if the resource is a handle.
	HandleURL func() string
	// Others returns the stack's other resources of a type. It's nil where there is no stack.
	Others func(name string) []Other
	// Ask asks the function of a custom resource, and returns its answer, or ErrPending while there is none.
	Ask func(ctx context.Context, q Question) (*Answer, error)
	// Answered returns its last answer, or nil.
	Answered func() (*Answer, error)
	// Moved notes that another resource stands for this one from now on.
	Moved func(id string)
	// Heard returns the signals for a wait condition whose handle has a URL, in the order in which they came.
	Heard func(handle string) ([]state.WaitSignal, error)
}

// Made is what is known of a resource that is there.
type Made struct {
	Ref        string         // what Ref returns; "" is the physical ID
	Attributes map[string]any // strings, and lists of them as []any
}

// kind declares a resource type whose properties are a P, a pointer to a struct: the compiler makes one function for all pointers, and one for
// each struct. Of a resource that isn't there, its functions return the error of the service that says so.
type kind[P any] struct {
	name       string
	attributes []string
	after      []string
	// check names what is wrong with properties besides their types. Those that aren't known yet are empty.
	check func(p P) (faults []string)
	// id returns the physical ID, if that is known before the resource is made. What has it already belongs to somebody else.
	id func(s Step, p P) string
	// find returns the ID of the resource that an earlier process made before it was killed, or "" if none did. It's for types whose IDs
	// are known only once they're made.
	find   func(ctx context.Context, s Step, p P) (id string, err error)
	create func(ctx context.Context, s Step, p P) (id string, err error)
	// update changes a resource in place. Without it, a new one takes the place of a resource of which anything changes.
	update func(ctx context.Context, s Step, id string, before, after P) error
	delete func(ctx context.Context, s Step, id string, p P) error
	// read returns what is known of a resource. Without it, that is its ID.
	read func(ctx context.Context, s Step, id string, p P) (Made, error)
	// live returns a resource's properties as they are now. The asked ones say in which form, and at least what identifies the resource.
	// Without it, nobody can tell whether a resource has drifted.
	live func(ctx context.Context, s Step, id string, asked P) (P, error)
	// list returns the IDs of the resources of the type. Without it, nobody can list them.
	list func(ctx context.Context, s Step, asked P) ([]string, error)
	// identifier names what tells a resource from others of its type, which are properties, or else attributes. All of them, joined by |, are
	// the physical ID, unless physical says which one is.
	identifier []string
	physical   string
	// ofARN returns the physical ID of the resource with an ARN, which identifies it, where the two aren't the same.
	ofARN func(arn string) string
	// settled reports whether a resource that was created or updated has become what it is to be. Without it, it has at once.
	settled func(ctx context.Context, s Step, id string, p P) (bool, error)
}

// resource is a type as it was declared, but for P. If each kind were a Type by itself, each would have all the methods once more: 0.9 MB.
type resource struct {
	kind[any]
	properties reflect.Type // the struct
}

// known are all types by name. Their files add them.
var known = map[string]Type{}

// add adds a type to those that there are.
func add[P any](k *kind[P]) Type {
	r := declared(k)
	known[r.name] = r
	return r
}

func declared[P any](k *kind[P]) *resource {
	r := &resource{properties: reflect.TypeFor[P]().Elem(), kind: kind[any]{
		name: k.name, attributes: k.attributes, after: k.after, identifier: k.identifier, physical: k.physical, ofARN: k.ofARN,
		create: func(ctx context.Context, s Step, p any) (string, error) { return k.create(ctx, s, p.(P)) },
		delete: func(ctx context.Context, s Step, id string, p any) error { return k.delete(ctx, s, id, p.(P)) },
	}}
	if k.check != nil {
		r.check = func(p any) []string { return k.check(p.(P)) }
	}
	if k.id != nil {
		r.id = func(s Step, p any) string { return k.id(s, p.(P)) }
	}
	if k.find != nil {
		r.find = func(ctx context.Context, s Step, p any) (string, error) { return k.find(ctx, s, p.(P)) }
	}
	if k.update != nil {
		r.update = func(ctx context.Context, s Step, id string, before, after any) error {
			return k.update(ctx, s, id, before.(P), after.(P))
		}
	}
	if k.read != nil {
		r.read = func(ctx context.Context, s Step, id string, p any) (Made, error) { return k.read(ctx, s, id, p.(P)) }
	}
	if k.live != nil {
		r.live = func(ctx context.Context, s Step, id string, asked any) (any, error) {
			return k.live(ctx, s, id, asked.(P))
		}
	}
	if k.list != nil {
		r.list = func(ctx context.Context, s Step, asked any) ([]string, error) { return k.list(ctx, s, asked.(P)) }
	}
	if k.settled != nil {
		r.settled = func(ctx context.Context, s Step, id string, p any) (bool, error) { return k.settled(ctx, s, id, p.(P)) }
	}
	return r
}

// Lookup returns the type with a name, or nil.
func Lookup(name string) Type {
	if IsCustom(name) {
		return &custom{customKind, name}
	}
	return known[name]
}

// Names lists all types.
func Names() []string { return slices.Sorted(maps.Keys(known)) }

// Unrecognized refuses types that there are none of, and names what is near the first.
func Unrecognized(names []string) error {
	near := ""
	if names := neighbours(names[0]); len(names) > 0 {
		near = ". Of the same service there are: " + strings.Join(names, ", ")
	}
	return template.Errorf("Template format error: Unrecognized resource types: [%s]%s", strings.Join(names, ", "), near)
}

// neighbours lists the types of the service that a type's name begins with.
func neighbours(name string) (near []string) {
	service := name[:strings.LastIndex(name, ":")+1]
	for _, known := range Names() {
		if service != "" && strings.HasPrefix(known, service) {
			near = append(near, known)
		}
	}
	return near
}

// of returns properties that were checked before.
func (k *resource) of(properties map[string]any) any {
	p := reflect.New(k.properties)
	decode(properties, p.Elem())
	return p.Interface()
}

func (k *resource) Check(resource string, properties map[string]any) error {
	faults := k.faults(new(decoder), properties)
	if len(faults) == 0 {
		return nil
	}
	return template.Errorf("Properties validation failed for resource %s with message:\n%s", resource, strings.Join(faults, "\n"))
}

func (k *resource) CheckDesired(properties map[string]any, exists bool) []string {
	return k.faults(&decoder{strict: true, exists: exists}, properties)
}

func (k *resource) faults(d *decoder, properties map[string]any) []string {
	p := reflect.New(k.properties)
	faults := d.decode(properties, p.Elem())
	if len(faults) > 0 || k.check == nil {
		return faults
	}
	return k.check(p.Interface())
}

func (k *resource) Attributes() []string { return k.attributes }

// AttributeOf returns the one of a type's attributes that stands for a name, or "".
func AttributeOf(t Type, name string) string {
	family, _, _ := strings.Cut(name, ".")
	for _, a := range t.Attributes() {
		if a == name || a == family+".*" || a == "*" {
			return a
		}
	}
	return ""
}

func (k *resource) After() []string { return k.after }

func (k *resource) HasTags() bool {
	f, has := k.properties.FieldByName("Tags")
	return has && f.Type == reflect.TypeFor[[]Tag]()
}

func (k *resource) Changes(before, after map[string]any) (changes []plan.Change) {
	a, b := reflect.ValueOf(k.of(before)).Elem(), reflect.ValueOf(k.of(after)).Elem()
	for _, p := range propertiesOf(a.Type()) {
		if !reflect.DeepEqual(a.FieldByIndex(p.index).Interface(), b.FieldByIndex(p.index).Interface()) {
			changes = append(changes, plan.Change{Name: p.name, Replaces: p.createOnly || k.update == nil})
		}
	}
	return changes
}

func (k *resource) ID(s Step, properties map[string]any) string {
	if k.id == nil {
		return ""
	}
	return k.id(s, k.of(properties))
}

func (k *resource) Exists(ctx context.Context, s Step, id string, properties map[string]any) (is bool, err error) {
	defer caught(&err)
	if k.read == nil {
		return false, nil
	}
	_, err = k.read(ctx, s, id, k.of(properties))
	if isMissing(err) {
		return false, nil
	}
	return err == nil, err
}

func (k *resource) Create(ctx context.Context, s Step, properties map[string]any) (id string, err error) {
	defer caught(&err)
	p := k.of(properties)
	if k.find != nil && !s.Since.IsZero() {
		if id, err := k.find(ctx, s, p); err != nil {
			return "", err
		} else if id != "" {
			return id, k.Complete(ctx, s, id, properties)
		}
	}
	return k.create(ctx, s, p)
}

func (k *resource) Complete(ctx context.Context, s Step, id string, properties map[string]any) (err error) {
	defer caught(&err)
	if k.update == nil {
		return nil
	}
	return k.update(ctx, s, id, k.of(nil), k.of(properties))
}

func (k *resource) Read(ctx context.Context, s Step, id string, properties map[string]any) (made Made, err error) {
	defer caught(&err)
	if k.read == nil {
		return Made{Ref: id}, nil
	}
	made, err = k.read(ctx, s, id, k.of(properties))
	if made.Ref == "" {
		made.Ref = id
	}
	return made, err
}

func (k *resource) Update(ctx context.Context, s Step, id string, before, after map[string]any) (err error) {
	defer caught(&err)
	return k.update(ctx, s, id, k.of(before), k.of(after))
}

func (k *resource) Settled(ctx context.Context, s Step, id string, properties map[string]any) (is bool, err error) {
	defer caught(&err)
	if k.settled == nil {
		return true, nil
	}
	return k.settled(ctx, s, id, k.of(properties))
}

// codesOfDependents are refusals to delete what something else still needs. A cluster's tasks stop for a while after their service is gone.
var codesOfDependents = []string{"DependencyViolation", "ResourceInUseException", "ClusterContainsTasksException"}

func (k *resource) Delete(ctx context.Context, s Step, id string, properties map[string]any) (err error) {
	defer caught(&err)
	err = k.delete(ctx, s, id, k.of(properties))
	switch {
	case isMissing(err):
		return nil
	case s.Account.Now().Sub(s.Since) < maxDependent && slices.ContainsFunc(codesOfDependents, func(code string) bool { return hasCode(err, code) }):
		return ErrPending // what depends on it may be on its way out, without the template saying so
	}
	return err
}

// caught turns a panic of a type's function into an error: a bug in one type fails one resource, not the process with all that it serves.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = &bug{value: p, at: panickedAt()}
	}
}

// bug is what a type's function panicked with.
type bug struct {
	value any
	at    string
}

func (b *bug) Error() string {
	return fmt.Sprintf("Internal Failure: a bug in Pintle, please report it: %v (%s)", b.value, b.at)
}

// panickedAt returns the place that panicked, such as iam_group.go:43. Deferred functions call it.
func panickedAt() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)]) // without those of caught and of this
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") || !more {
			return filepath.Base(f.File) + ":" + strconv.Itoa(f.Line)
		}
	}
}

// maxDependent is how long a deletion waits for what depends on a resource to go.
const maxDependent = 5 * time.Minute

// undo deletes a resource that couldn't be made whole, or has it on its way out, and returns why.
func undo[P any](ctx context.Context, s Step, id string, p P, remove func(context.Context, Step, string, P) error, why error) error {
	if err := remove(ctx, s, id, p); err != nil && !isMissing(err) && !errors.Is(err, ErrPending) {
		return err
	}
	return why
}

// ErrPending is returned by Delete for a resource that isn't gone yet, by Create for one that must wait for another to be gone, and by Update
// for one that can't be changed yet: it's to be called again.
var ErrPending = errors.New("a resource is busy or being deleted")

// errMissing is for resources whose service has no error that says that one isn't there.
var errMissing = errors.New("the resource is not there")

// isMissing reports whether an error says that the resource isn't there.
func isMissing(err error) bool {
	var refused smithy.APIError
	if !errors.As(err, &refused) {
		return errors.Is(err, errMissing)
	}
	code := refused.ErrorCode()
	endings := []string{"NotFound", "NotFoundError", "NotFoundException", "DoesNotExist"}
	return slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(code, ending) }) ||
		slices.Contains([]string{
			"AWS.SimpleQueueService.NonExistentQueue", "Gateway.NotAttached", "InvalidPlacementGroup.Unknown", "NoSuchBucket",
			"NoSuchBucketPolicy", "NoSuchEntity", "ResourceNotFound",
		}, code)
}

// did drops an answer that says nothing.
func did[Out, In any](ctx context.Context, s Step, in *In) error {
	_, err := call.Do[Out](ctx, s.Services, in)
	return err
}

// hasCode reports whether an error is a refusal with a code.
func hasCode(err error, code string) bool {
	var refused smithy.APIError
	return errors.As(err, &refused) && refused.ErrorCode() == code
}

// Tag is a tag as most types have it.
type Tag struct {
	Key   string `cfn:"required"`
	Value string `cfn:"required"`
}

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

// retag changes a resource's tags: untag takes those away that aren't there any more, and tag puts all that there are.
func retag(before, after []Tag, untag func(keys []string) error, tag func() error) error {
	var gone []string
	for _, t := range before {
		if !slices.ContainsFunc(after, func(n Tag) bool { return n.Key == t.Key }) {
			gone = append(gone, t.Key)
		}
	}
	if len(gone) > 0 {
		if err := untag(gone); err != nil {
			return err
		}
	}
	if len(after) == 0 {
		return nil
	}
	return tag()
}
