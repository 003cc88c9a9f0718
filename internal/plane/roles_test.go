package plane

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// TestDeletedRole: a task whose role is deleted gets no new credentials, not even those of a role that came under the same name later. A role
// that was a name alone from the beginning stays one.
func TestDeletedRole(t *testing.T) {
	p := opened(t, Options{AccessKeyID: "AKID", SecretAccessKey: "secret"}) // a loop would find that the node has no connection
	t.Cleanup(func() { p.Close() })
	if _, err := p.ECS.CreateCluster(t.Context(), &awsecs.CreateClusterInput{}); err != nil {
		t.Fatal(err)
	}
	statetest.Update(t, p.State, func(tx *state.Tx) {
		status := "ACTIVE"
		tx.ContainerInstances.Put(&state.ContainerInstance{
			ContainerInstance: types.ContainerInstance{
				ContainerInstanceArn: aws.String("arn:aws:ecs:us-east-1:000000000000:container-instance/default/i"),
				Status:               &status,
				AgentConnected:       true,
				Attributes: []types.Attribute{
					{Name: aws.String("com.amazonaws.ecs.capability.task-iam-role")},
					{Name: aws.String("com.amazonaws.ecs.capability.docker-remote-api.1.17")},
					{Name: aws.String("com.amazonaws.ecs.capability.docker-remote-api.1.18")},
				},
			},
			ClusterArn: "arn:aws:ecs:us-east-1:000000000000:cluster/default",
			Capacity:   state.Resources{CPU: 4096, MemoryMiB: 4096},
		})
	})
	create := func() {
		t.Helper()
		_, err := p.IAM.CreateRole(t.Context(), &awsiam.CreateRoleInput{RoleName: aws.String("worker"), Path: aws.String("/team/"), AssumeRolePolicyDocument: aws.String(
			`{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Principal": {"Service": "ecs-tasks.amazonaws.com"}, "Action": "sts:AssumeRole"}}`)})
		if err != nil {
			t.Fatal(err)
		}
	}
	has := func(task *state.Task, role string, want bool) {
		t.Helper()
		if c := p.taskCredentials(task, role, acs.TaskRole); (c != nil) != want {
			t.Errorf("credentials of %s: %v, want %v", role, c != nil, want)
		}
	}
	const worker, name = "arn:aws:iam::000000000000:role/team/worker", "arn:aws:iam::000000000000:role/name"
	create()
	task, unbound := runAs(t, p, worker), runAs(t, p, name)
	has(task, worker, true)
	if _, err := p.IAM.DeleteRole(t.Context(), &awsiam.DeleteRoleInput{RoleName: aws.String("worker")}); err != nil {
		t.Fatal(err)
	}
	has(task, worker, false)
	has(unbound, name, true)
	create()
	has(task, worker, false)
	has(runAs(t, p, worker), worker, true)
}

// runAs runs a task with a role.
func runAs(t *testing.T, p *Plane, role string) *state.Task {
	t.Helper()
	_, err := p.ECS.RegisterTaskDefinition(t.Context(), &awsecs.RegisterTaskDefinitionInput{
		Family:      aws.String("job"),
		TaskRoleArn: &role,
		ContainerDefinitions: []types.ContainerDefinition{
			{Name: aws.String("main"), Image: aws.String("busybox"), Memory: aws.Int32(64)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.ECS.RunTask(t.Context(), &awsecs.RunTaskInput{TaskDefinition: aws.String("job")})
	if err != nil || len(out.Tasks) == 0 {
		t.Fatalf("%v, %v", out.Failures, err)
	}
	return p.State.View().Tasks.Get(*out.Tasks[0].TaskArn)
}
