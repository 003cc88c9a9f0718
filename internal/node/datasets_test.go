package node

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/dataset"
)

// withPlugins is a runtime with drivers of volumes.
type withPlugins struct{ *fakeRuntime }

func (withPlugins) Name() string { return "docker" }

func (withPlugins) VolumeDrivers(context.Context) ([]string, error) {
	return []string{"local", "rexray/ebs:1"}, nil
}

// TestVolumeCapabilities: a node says which volumes tasks can have there.
func TestVolumeCapabilities(t *testing.T) {
	cache, err := dataset.Open(t.TempDir(), 0, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a := New(Config{Runtime: withPlugins{newFakeRuntime()}, Objects: &objects{}, DataSets: cache})
	var names []string
	for _, at := range a.registration(t.Context()).Attributes {
		names = append(names, *at.Name)
	}
	for _, driver := range []string{"local", "rexray/ebs.1", "pintle-s3"} {
		if !slices.Contains(names, "ecs.capability.docker-plugin."+driver) {
			t.Errorf("the driver %s isn't among %v", driver, names)
		}
	}
	for name, c := range map[string]Config{
		"no cache":        {Runtime: withPlugins{}, Objects: &objects{}},
		"no S3":           {Runtime: withPlugins{}, DataSets: cache},
		"plain processes": {Runtime: newFakeRuntime(), Objects: &objects{}, DataSets: cache},
	} {
		if _, has := New(c).attributes()["ecs.capability.docker-plugin.pintle-s3"]; has {
			t.Errorf("%s: it has data sets", name)
		}
	}
}

// credentialsOf is an S3 that notes as whom it's asked.
type credentialsOf struct {
	dataset.Client
	who []string
}

func (c *credentialsOf) HeadObject(ctx context.Context, _ *s3.HeadObjectInput, options ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	var o s3.Options
	for _, change := range options {
		change(&o)
	}
	got, err := o.Credentials.Retrieve(ctx)
	c.who = append(c.who, got.AccessKeyID)
	return &s3.HeadObjectOutput{}, err
}

// TestDataSetsAreReadAsTheTaskRole: with the credentials that the role has by then, and never with the node's.
func TestDataSetsAreReadAsTheTaskRole(t *testing.T) {
	role := &acs.IAMRoleCredentials{AccessKeyID: "first", SecretAccessKey: "s"}
	store := &credentialsOf{}
	client := asRole{store, func() *acs.IAMRoleCredentials { return role }}
	for _, next := range []*acs.IAMRoleCredentials{{AccessKeyID: "second", SecretAccessKey: "s"}, nil} {
		if _, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Key: aws.String("k")}); err != nil {
			t.Error(err)
		}
		role = next
	}
	if _, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{}); err == nil {
		t.Error("it's read without a role")
	}
	if !slices.Equal(store.who, []string{"first", "second", ""}) {
		t.Errorf("it's read as %q", store.who)
	}
}
