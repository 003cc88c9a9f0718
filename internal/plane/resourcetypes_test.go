package plane

import (
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
	made  map[string]any // what $NAME and $NAME.X stand for
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

// without calls do with copies of a value from each of which one member or item is missing, and with its path.
func without(v any, path string, do func(v any, path string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			less := maps.Clone(v)
			delete(less, name)
			do(less, path+"/"+name)
			without(v[name], path+"/"+name, func(member any, path string) {
				other := maps.Clone(v)
				other[name] = member
				do(other, path)
			})
		}
	case []any:
		for i, item := range v {
			do(slices.Delete(slices.Clone(v), i, i+1), fmt.Sprint(path, "/", i))
			without(item, fmt.Sprint(path, "/", i), func(item any, path string) {
				other := slices.Clone(v)
				other[i] = item
				do(other, path)
			})
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

// try does with a resource whatever a stack does, and returns the first error that isn't told.
func (s *stack) try(kind resources.Type, properties map[string]any) error {
	if err := kind.Check("R", properties); err != nil {
		return s.untold(err)
	}
	step := s.step()
	id, err := kind.Create(s.ctx, step, properties)
	if err != nil {
		return s.untold(err)
	}
	kind.Changes(properties, map[string]any{})
	errs := []error{}
	_, err = kind.Settled(s.ctx, step, id, properties)
	errs = append(errs, err)
	_, err = kind.Read(s.ctx, step, id, properties)
	errs = append(errs, err)
	if kind.IsReadable() {
		_, err = kind.Live(s.ctx, step, id, properties)
		errs = append(errs, err)
	}
	errs = append(errs, kind.Complete(s.ctx, step, id, properties))
	step.Since = time.Now().Add(-time.Minute)
	_, err = kind.Create(s.ctx, step, properties)
	errs = append(errs, err, kind.Delete(s.ctx, step, id, properties))
	for _, err := range errs {
		if err := s.untold(err); err != nil {
			return err
		}
	}
	return nil
}

func (s *stack) untold(err error) error {
	if isTold(err) {
		return nil
	}
	return err
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

// TestResourcesWithout makes a resource of each of CloudFormation's types, and then others that lack one thing of it each. None of them costs
// more than a refusal that says why.
func TestResourcesWithout(t *testing.T) {
	text, err := os.ReadFile("testdata/resources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var examples []map[string]map[string]any
	if err := yaml.Unmarshal(text, &examples); err != nil {
		t.Fatal(err)
	}
	p := opened(t, Options{Fleet: FleetOptions{Kind: "local"}})
	s := &stack{t: t, plane: p, ctx: call.With(t.Context(), call.Call{Service: "cloudformation", Stack: stackID}), made: map[string]any{
		"$policy": statement("sqs:SendMessage", map[string]any{"Resource": "*", "Principal": "*"}),
		"$topics": statement("sns:Publish", map[string]any{"Resource": "*", "Principal": "*"}),
		"$own":    statement("sqs:SendMessage", map[string]any{"Resource": "*"}),
		"$trust": statement("sts:AssumeRole", map[string]any{"Principal": map[string]any{
			"Service": []any{"autoscaling.amazonaws.com", "ecs-tasks.amazonaws.com"},
		}}),
	}}
	s.made["$certificate"] = importCertificate(t, p)
	met := map[string]bool{ // without examples
		"AWS::CloudFormation::Stack":                  true, // its template is a resource of its own
		"AWS::SecretsManager::SecretTargetAttachment": true, // each is refused
	}
	type resource struct {
		kind       resources.Type
		name       string
		properties map[string]any
	}
	var all []resource
	for _, example := range examples {
		for title, properties := range example {
			typ, name, named := strings.Cut(title, " ")
			if !named {
				name = typ[strings.LastIndex(typ, ":")+1:]
			}
			r := resource{resources.Lookup(typ), name, s.filled(properties).(map[string]any)}
			if err := s.make(r.kind, name, r.properties); err != nil {
				t.Errorf("%s: %v", title, err)
			}
			met[typ] = true
			all = append(all, r)
		}
	}
	for _, name := range resources.Names() {
		if !met[name] {
			t.Errorf("there is no example of %s", name)
		}
	}
	for _, r := range slices.Backward(all) {
		if err := r.kind.Delete(s.ctx, s.step(), fmt.Sprint(s.made["$"+r.name+" id"]), r.properties); !isTold(err) {
			t.Errorf("delete %s: %v", r.name, err)
		}
		without(r.properties, r.name, func(v any, path string) {
			properties := v.(map[string]any)
			if err := s.try(r.kind, properties); err != nil {
				given, _ := json.Marshal(properties)
				t.Errorf("without %s: %v: %s", path, err, given)
			}
		})
	}
}
