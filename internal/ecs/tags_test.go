package ecs

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// TestManagedTags: tasks of RunTask and StartTask that ask for ECS's own tags have that of their cluster beside the user's, who
// can change their own only.
func TestManagedTags(t *testing.T) {
	s, store := newTestService(t)
	node := registerNode(t, s)
	own := []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}}
	run, err := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("f"), EnableECSManagedTags: true, Tags: own})
	if err != nil {
		t.Fatal(err)
	}
	start, err := s.StartTask(t.Context(), &ecs.StartTaskInput{
		TaskDefinition: aws.String("f"), EnableECSManagedTags: true, Tags: own, ContainerInstances: []string{node},
	})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("f"), Tags: own})
	if err != nil {
		t.Fatal(err)
	}
	const managed = "aws:ecs:clusterName"
	for _, c := range []struct {
		what  string
		tasks []types.Task
		want  map[string]string
	}{
		{"RunTask", run.Tasks, map[string]string{"team": "a", managed: "default"}},
		{"StartTask", start.Tasks, map[string]string{"team": "a", managed: "default"}},
		{"RunTask without managed tags", plain.Tasks, map[string]string{"team": "a"}},
	} {
		if len(c.tasks) != 1 {
			t.Fatalf("%s: %d tasks", c.what, len(c.tasks))
		}
		expectTags(t, s, c.what, c.tasks[0].TaskArn, c.want)
	}

	arn, before := run.Tasks[0].TaskArn, store.Revision()
	_, err = s.TagResource(t.Context(), &ecs.TagResourceInput{
		ResourceArn: arn, Tags: []types.Tag{{Key: aws.String(managed), Value: aws.String("x")}},
	})
	expectRefused(t, store, before, err, invalid, "aws:")
	_, err = s.UntagResource(t.Context(), &ecs.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"team", managed}})
	expectRefused(t, store, before, err, invalid, "aws:")
	_, err = s.TagResource(t.Context(), &ecs.TagResourceInput{
		ResourceArn: arn, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("b")}},
	})
	if err != nil {
		t.Errorf("a user's tag beside a managed one: %v", err)
	}
	expectTags(t, s, "after TagResource", arn, map[string]string{"team": "b", managed: "default"})
}

func expectTags(t *testing.T, s *Service, what string, arn *string, want map[string]string) {
	t.Helper()
	out, err := s.ListTagsForResource(t.Context(), &ecs.ListTagsForResourceInput{ResourceArn: arn})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, tag := range out.Tags {
		got[*tag.Key] = *tag.Value
	}
	if len(got) != len(want) {
		t.Errorf("%s: tags %v, want %v", what, got, want)
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: tag %s is %q, want %q", what, key, got[key], value)
		}
	}
}
