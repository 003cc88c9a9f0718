package ecs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// TestDescribingWhatIsNotThere: what isn't there is a failure with its ARN in full, and the ARN of something else is refused.
func TestDescribingWhatIsNotThere(t *testing.T) {
	s, ctx := newECS(t)
	newExternal(t, s, ctx)
	prefix := strings.TrimSuffix(s.arn("cluster", ""), "cluster/")
	id := strings.Repeat("0", 32)
	failed := func(failures []types.Failure, err error) string {
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, f := range failures {
			all = append(all, fmt.Sprint(strings.TrimPrefix(*f.Arn, prefix), " ", *f.Reason))
		}
		return strings.Join(all, ", ")
	}
	describe := map[string]func(name string) string{
		"cluster": func(name string) string {
			out, err := s.DescribeClusters(ctx, &ecs.DescribeClustersInput{Clusters: []string{name}})
			return failed(out.Failures, err)
		},
		"task": func(name string) string {
			out, err := s.DescribeTasks(ctx, &ecs.DescribeTasksInput{Tasks: []string{name}})
			if err != nil {
				return err.Error()
			}
			return failed(out.Failures, nil)
		},
		"service": func(name string) string {
			out, err := s.DescribeServices(ctx, &ecs.DescribeServicesInput{Services: []string{name}})
			if err != nil {
				return err.Error()
			}
			return failed(out.Failures, nil)
		},
		"container-instance": func(name string) string {
			out, err := s.DescribeContainerInstances(ctx, &ecs.DescribeContainerInstancesInput{ContainerInstances: []string{name}})
			if err != nil {
				return err.Error()
			}
			return failed(out.Failures, nil)
		},
		"task-set": func(name string) string {
			out, err := s.DescribeTaskSets(ctx, &ecs.DescribeTaskSetsInput{Cluster: new("default"), Service: new("x"), TaskSets: []string{name}})
			return failed(out.Failures, err)
		},
		"capacity-provider": func(name string) string {
			out, err := s.DescribeCapacityProviders(ctx, &ecs.DescribeCapacityProvidersInput{CapacityProviders: []string{name}})
			return failed(out.Failures, err)
		},
	}
	const refused = "InvalidParameterException: "
	for _, c := range []struct{ kind, name, want string }{
		{"cluster", "nope", "cluster/nope MISSING"},
		{"task", id, "task/default/" + id + " MISSING"},
		{"task", prefix + "task/default/" + id, "task/default/" + id + " MISSING"},
		{"task", prefix + "task/" + id, "task/" + id + " MISSING"},
		{"task", prefix + "task/other/" + id, refused + "Invalid identifier: Identifier is for cluster other. Your cluster is default"},
		{"task", prefix + "service/default/" + id, refused + "Unsupported resource type: service"},
		{"service", "nope", "service/default/nope MISSING"},
		{"service", prefix + "service/other/x", refused + "Invalid identifier: Identifier is for cluster other. Your cluster is default"},
		{"service", prefix + "service/default/x/y", refused + "Invalid identifier: Unexpected number of separators"},
		{"container-instance", id, "container-instance/default/" + id + " MISSING"},
		{"container-instance", prefix + "container-instance/other/" + id,
			refused + "Invalid identifier: Identifier is for cluster other. Your cluster is default"},
		{"task-set", "ecs-svc/1", "task-set/default/x/ecs-svc/1 MISSING"},
		{"capacity-provider", "nope", "capacity-provider/nope MISSING"},
	} {
		if got := describe[c.kind](c.name); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.kind, c.name, got, c.want)
		}
	}
}
