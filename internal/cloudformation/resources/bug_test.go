package resources

import (
	"context"
	"regexp"
	"testing"
)

// TestBug: a panic in a type fails the resource, with a reason that says where it was.
func TestBug(t *testing.T) {
	broken := declared(&kind[*Tag]{
		create: func(_ context.Context, s Step, _ *Tag) (string, error) { return s.HandleURL(), nil }, // which is nil
	})
	_, err := broken.Create(t.Context(), Step{}, nil)
	want := regexp.MustCompile(`^Internal Failure: a bug in Pintle, please report it: .*nil pointer dereference \(bug_test\.go:\d+\)$`)
	if err == nil || !want.MatchString(err.Error()) {
		t.Errorf("got %v", err)
	}
}

// TestUnions: the SDK's unions and documents can't be filled in from a template.
func TestUnions(t *testing.T) {
	for name, properties := range map[string]string{
		"AWS::ECS::Service":        `{"ServiceConnectConfiguration": {"Enabled": true, "ContainerConfigurations": [{}]}}`,
		"AWS::ECS::TaskDefinition": `{"ContainerDefinitions": [{"ResourceRequirements": [{"SharingStrategy": "x"}]}]}`,
	} {
		if err := Lookup(name).Check("R", parse(t, properties)); err == nil {
			t.Errorf("%s: %s is taken", name, properties)
		}
	}
}
