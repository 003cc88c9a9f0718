package plane

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/acm"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"go.yaml.in/yaml/v3"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/certificate"
	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// statement is a policy of one statement.
func statement(action string, more map[string]any) map[string]any {
	s := map[string]any{"Effect": "Allow", "Action": action}
	maps.Copy(s, more)
	return map[string]any{"Version": "2012-10-17", "Statement": []any{s}}
}

// stack makes resources as a stack does.
type stack struct {
	t     *testing.T
	plane *Plane
	ctx   context.Context
	made  map[string]any  // what $NAME and $NAME.X stand for
	met   map[string]bool // the types of which there is one
	count int
}

const stackID = "arn:aws:cloudformation:us-east-1:000000000000:stack/s/1"

func (s *stack) step() resources.Step {
	s.count++
	return resources.Step{
		Services:  s.plane,
		Account:   s.plane.account(),
		Stack:     "s",
		StackID:   stackID,
		Name:      fmt.Sprintf("R%d", s.count),
		Token:     fmt.Sprintf("00000000-0000-4000-8000-%012d", s.count),
		HandleURL: func() string { return "http://127.0.0.1/handle" },
		Others:    func(string) []resources.Other { return nil },
		Keep:      func(string, string) {},
		Depth:     func() int { return 1 },
		Heard:     func(string) ([]state.WaitSignal, error) { return nil, nil },
	}
}

var placeholder = regexp.MustCompile(`\$[A-Za-z.]+`)

// filled returns a value in which everything that begins with a $ is what it stands for.
func (s *stack) filled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, member := range v {
			out[k] = s.filled(member)
		}
		return out
	case []any:
		var out []any
		for _, item := range v {
			out = append(out, s.filled(item))
		}
		return out
	case string:
		if is, there := s.made[v]; there {
			return is
		}
		return placeholder.ReplaceAllStringFunc(v, func(name string) string { return fmt.Sprint(s.made[name]) })
	}
	return v
}

// make makes a resource and keeps what its names stand for.
func (s *stack) make(kind resources.Type, name string, properties map[string]any) error {
	step := s.step()
	if err := kind.Check(name, properties); err != nil {
		return err
	}
	id, err := kind.Create(s.ctx, step, properties)
	if err != nil {
		return err
	}
	made, err := kind.Read(s.ctx, step, id, properties)
	s.made["$"+name] = made.Ref
	s.made["$"+name+" id"] = id
	if i := s.plane.State.View().Instances.Get(id); i != nil { // its machine runs
		err = errors.Join(err, s.plane.State.Update(s.ctx, func(tx *state.Tx) error {
			tx.Instances.Put(i.In(types.InstanceStateNameRunning))
			return nil
		}))
	}
	for attribute, value := range made.Attributes {
		s.made["$"+name+"."+attribute] = value
	}
	return err
}

// mutate calls do with copies of a value in each of which one member or item is missing or another, and says what is.
func mutate(v any, path string, do func(v any, path string)) {
	switch v := v.(type) {
	case map[string]any:
		do(map[string]any{}, path+" empty")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			less := maps.Clone(v)
			delete(less, name)
			do(less, path+"/"+name+" missing")
			mutate(v[name], path+"/"+name, func(member any, path string) {
				other := maps.Clone(v)
				other[name] = member
				do(other, path)
			})
		}
	case []any:
		do([]any{}, path+" empty")
		do(append(slices.Clone(v), v...), path+" twice")
		for i, item := range v {
			mutate(item, fmt.Sprint(path, "/", i), func(item any, path string) {
				other := slices.Clone(v)
				other[i] = item
				do(other, path)
			})
		}
	case string:
		for _, other := range []string{"", "x", "-1"} {
			do(other, path+" "+other)
		}
	}
}

// isTold reports whether an error is one that a stack's user can do something about.
func isTold(err error) bool {
	var refused smithy.APIError
	var told *template.Error
	return err == nil || errors.Is(err, resources.ErrPending) || resources.IsMissing(err) || errors.As(err, &told) ||
		errors.As(err, &refused) && refused.ErrorFault() != smithy.FaultServer && refused.ErrorMessage() != ""
}

// told fails the test for an error that isn't told.
func (s *stack) told(path string, properties map[string]any, err error) {
	s.t.Helper()
	if !isTold(err) {
		given, _ := json.Marshal(properties)
		s.t.Errorf("%s: %v: %s", path, err, given)
	}
}

// try does with a resource whatever a stack does.
func (s *stack) try(kind resources.Type, properties map[string]any, path string) {
	if err := kind.Check("R", properties); err != nil {
		s.told(path, properties, err)
		return
	}
	step := s.step()
	id, err := kind.Create(s.ctx, step, properties)
	s.told(path, properties, err)
	if err != nil {
		return
	}
	kind.Changes(properties, map[string]any{})
	_, err = kind.Settled(s.ctx, step, id, properties)
	s.told(path, properties, err)
	_, err = kind.Read(s.ctx, step, id, properties)
	s.told(path, properties, err)
	if kind.IsReadable() {
		_, err = kind.Live(s.ctx, step, id, properties)
		s.told(path, properties, err)
	}
	s.told(path, properties, kind.Complete(s.ctx, step, id, properties))
	step.Since = time.Now().Add(-time.Minute)
	_, err = kind.Create(s.ctx, step, properties)
	s.told(path, properties, err)
	s.told(path, properties, kind.Delete(s.ctx, step, id, properties))
}

// importCertificate returns the ARN of a certificate.
func importCertificate(t *testing.T, p *Plane) string {
	dir := t.TempDir()
	_, err := certificate.Open(dir, nil, time.Now)
	body, unread := os.ReadFile(certificate.Path(dir))
	key, keyUnread := os.ReadFile(filepath.Join(dir, "ca-key.pem"))
	if err := errors.Join(err, unread, keyUnread); err != nil {
		t.Fatal(err)
	}
	out, err := call.Do[acm.ImportCertificateOutput](t.Context(), p, &acm.ImportCertificateInput{Certificate: body, PrivateKey: key})
	if err != nil {
		t.Fatal(err)
	}
	return *out.CertificateArn
}

// resource is an example of a type.
type resource struct {
	typ        string
	kind       resources.Type
	name       string
	id         string
	properties map[string]any
}

// examples makes a resource of each type, and more of some.
func (s *stack) examples() (all []resource) {
	text, err := os.ReadFile("testdata/resources.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	var examples []map[string]map[string]any
	if err := yaml.Unmarshal(text, &examples); err != nil {
		s.t.Fatal(err)
	}
	for _, example := range examples {
		for title, properties := range example {
			typ, name, named := strings.Cut(title, " ")
			if !named {
				name = typ[strings.LastIndex(typ, ":")+1:]
			}
			r := resource{typ, resources.Lookup(typ), name, "", s.filled(properties).(map[string]any)}
			if err := s.make(r.kind, name, r.properties); err != nil {
				s.t.Errorf("%s: %v", title, err)
			}
			r.id = fmt.Sprint(s.made["$"+name+" id"])
			s.met[typ] = true
			all = append(all, r)
		}
	}
	return all
}

// putLayer puts a zip file into a bucket, of which a layer is made.
func putLayer(t *testing.T, p *Plane) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if _, err := z.Create("python/layer.py"); err != nil {
		t.Fatal(err)
	}
	z.Close() //nolint:errcheck // into memory
	if _, err := p.S3.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: new("code")}); err != nil {
		t.Fatal(err)
	}
	in := &s3.PutObjectInput{Bucket: new("code"), Key: new("layer.zip"), Body: &b, ContentLength: new(int64(b.Len()))}
	if _, err := p.S3.PutObject(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// newStack returns a stack of which there is nothing yet.
func newStack(t *testing.T, p *Plane) *stack {
	return &stack{t: t, plane: p, ctx: call.With(t.Context(), call.Call{Service: "cloudformation", Stack: stackID}), met: map[string]bool{}}
}

// prepare makes what the examples refer to.
func (s *stack) prepare() {
	s.made = map[string]any{
		"$certificate": importCertificate(s.t, s.plane),
		"$policy":      statement("sqs:SendMessage", map[string]any{"Resource": "*", "Principal": "*"}),
		"$topics":      statement("sns:Publish", map[string]any{"Resource": "*", "Principal": "*"}),
		"$bus":         statement("events:PutEvents", map[string]any{"Resource": "*", "Principal": "*"}),
		"$own":         statement("sqs:SendMessage", map[string]any{"Resource": "*"}),
		"$trust": statement("sts:AssumeRole", map[string]any{"Principal": map[string]any{
			"Service": []any{"autoscaling.amazonaws.com", "ecs-tasks.amazonaws.com", "lambda.amazonaws.com"},
		}}),
	}
	s.made["$LATEST"] = "$LATEST"
	putLayer(s.t, s.plane)
}

// TestMutatedResources makes a resource of each of CloudFormation's types, and then others in which one thing each is missing or another. None of
// them costs more than a refusal that says why.
func TestMutatedResources(t *testing.T) {
	p := opened(t, Options{Fleet: FleetOptions{Kind: "local"}, FileSystems: t.TempDir()})
	s := newStack(t, p)
	s.prepare()
	s.met = map[string]bool{
		"AWS::CloudFormation::Stack":                  true, // its template is a resource of its own
		"AWS::SecretsManager::SecretTargetAttachment": true, // each is refused
	}
	all := s.examples()
	for _, name := range resources.Names() {
		if !s.met[name] {
			t.Errorf("there is no example of %s", name)
		}
	}
	for _, r := range slices.Backward(all) {
		s.mutate(r)
	}
}

// mutate changes one thing after the other in a resource that there is, deletes it, and makes others of which one thing is other each.
func (s *stack) mutate(r resource) {
	step, id := s.step(), fmt.Sprint(s.made["$"+r.name+" id"])
	mutate(r.properties, r.name, func(v any, path string) {
		other := v.(map[string]any)
		if !r.kind.IsUpdatable() || r.kind.Check("R", other) != nil {
			return
		}
		s.told(path, other, r.kind.Update(s.ctx, step, id, r.properties, other))
		s.told(path, other, r.kind.Update(s.ctx, step, id, other, r.properties))
	})
	s.told("delete "+r.name, r.properties, r.kind.Delete(s.ctx, step, id, r.properties))
	s.try(r.kind, r.properties, r.name)
	mutate(r.properties, r.name, func(v any, path string) { s.try(r.kind, v.(map[string]any), path) })
}
