package plane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	awssts "github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/ecs/enrollment"
	"github.com/pintle/pintle/internal/sdkhttp"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/call"
)

// serveSigned runs a control plane on loopback that checks signatures, until the test ends.
func serveSigned(t *testing.T) *Plane {
	t.Helper()
	return serve(t, Options{AccessKeyID: "AKID", SecretAccessKey: "secret"})
}

// opened opens a control plane on loopback, of which no loop runs.
func opened(t *testing.T, o Options) *Plane {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	o.Data = t.TempDir()
	o.Region = "us-east-1"
	o.Account = "000000000000"
	o.Lost = time.Minute
	o.Settle = time.Minute
	o.Log = slog.New(slog.DiscardHandler)
	p, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEndAtOnce: a control plane that is told to end while it begins ends without an error, with all closed.
func TestEndAtOnce(t *testing.T) {
	p := opened(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Run(ctx); err != nil {
		t.Error(err)
	}
	if p.lock != nil {
		t.Error("the data directory is still locked")
	}
}

// serve runs a control plane on loopback until the test ends.
func serve(t *testing.T, o Options) *Plane {
	t.Helper()
	p := opened(t, o)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if _, err := p.ECS.CreateCluster(t.Context(), &awsecs.CreateClusterInput{}); err != nil {
		t.Fatal(err)
	}
	return p
}

// client returns an SDK client of the control plane.
func (p *Plane) client(id, secret, token string) *awsecs.Client {
	return awsecs.NewFromConfig(p.config(id, secret, token))
}

// config is what SDK clients of the control plane need.
func (p *Plane) config(id, secret, token string) aws.Config {
	return aws.Config{
		Region:           "us-east-1",
		BaseEndpoint:     aws.String(p.Endpoint()),
		Credentials:      credentials.NewStaticCredentialsProvider(id, secret, token),
		HTTPClient:       sdkhttp.New(),
		RetryMaxAttempts: 1,
	}
}

// code returns the code of an AWS error, or "" without one.
func code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

const aTask = "arn:aws:ecs:us-east-1:000000000000:task/default/a"

// putTask puts a task in a status.
func putTask(t *testing.T, p *Plane, status string) {
	t.Helper()
	statetest.Update(t, p.State, func(tx *state.Tx) {
		tx.Tasks.Put(&state.Task{Task: types.Task{
			TaskArn:       aws.String(aTask),
			ClusterArn:    aws.String("arn:aws:ecs:us-east-1:000000000000:cluster/default"),
			LastStatus:    &status,
			DesiredStatus: &status,
			StoppedAt:     aws.Time(time.Now()),
		}})
	})
}

// TestTaskCredentials: a task's credentials are no node's, and end with the task.
func TestTaskCredentials(t *testing.T) {
	p := serveSigned(t)
	c := p.issuer.Issue(aTask, "arn:aws:iam::000000000000:role/worker", "", "TaskApplication")
	client := p.client(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)
	list := func() error {
		_, err := client.ListClusters(t.Context(), nil)
		return err
	}
	if got := code(list()); got != "ExpiredTokenException" {
		t.Errorf("a task that there isn't gets %q", got)
	}
	putTask(t, p, "RUNNING")
	if err := list(); err != nil {
		t.Errorf("a running task: %v", err)
	}
	_, err := client.DiscoverPollEndpoint(t.Context(), nil)
	if got := code(err); got != "AccessDeniedException" {
		t.Errorf("a task that asks where nodes connect gets %q", got)
	}
	putTask(t, p, "STOPPED")
	if got := code(list()); got != "ExpiredTokenException" {
		t.Errorf("a task that has ended gets %q", got)
	}
}

// TestTaskStaysItself: no role that a task assumes lets it start more than it could itself, or outlives it.
func TestTaskStaysItself(t *testing.T) {
	p := serveSigned(t)
	putTask(t, p, "RUNNING")
	c := p.issuer.Issue(aTask, "arn:aws:iam::000000000000:role/worker", "", "TaskApplication")
	id, secret, token := c.AccessKeyID, c.SecretAccessKey, c.SessionToken
	for range 2 { // a session assumes a role, too
		answer, err := awssts.NewFromConfig(p.config(id, secret, token)).AssumeRole(t.Context(), &awssts.AssumeRoleInput{
			RoleArn:         aws.String("arn:aws:iam::000000000000:role/other"),
			RoleSessionName: aws.String("mine"),
		})
		if err != nil {
			t.Fatal(err)
		}
		id, secret, token = *answer.Credentials.AccessKeyId, *answer.Credentials.SecretAccessKey, *answer.Credentials.SessionToken
	}
	client := p.client(id, secret, token)
	_, err := client.RegisterTaskDefinition(t.Context(), &awsecs.RegisterTaskDefinitionInput{
		Family: aws.String("escape"),
		ContainerDefinitions: []types.ContainerDefinition{
			{Name: aws.String("main"), Image: aws.String("busybox"), Memory: aws.Int32(64), Privileged: aws.Bool(true)},
		},
	})
	if got := code(err); got != "AccessDeniedException" {
		t.Errorf("a privileged container gets %q", got)
	}
	putTask(t, p, "STOPPED")
	_, err = client.ListClusters(t.Context(), nil)
	if got := code(err); got != "ExpiredTokenException" {
		t.Errorf("a session of a task that has ended gets %q", got)
	}
}

// TestWhoMayCall checks which operations the account's owner, tasks and nodes may call at all.
func TestWhoMayCall(t *testing.T) {
	task, node := call.Identity{Task: aTask}, call.Identity{Node: true}
	session := call.Identity{Role: "arn:aws:iam::000000000000:role/worker"}
	for _, c := range []struct {
		service, operation string
		task, node         bool
	}{
		{"ecs", "RegisterContainerInstance", false, true},
		{"ecs", "DeregisterContainerInstance", false, true},
		{"ecs", "DiscoverPollEndpoint", false, true},
		{"ecs", "SubmitTaskStateChange", false, true},
		{"ecs", "SubmitContainerStateChange", false, true},
		{"ecs", "SubmitAttachmentStateChanges", false, true},
		{"ecs", "UpdateContainerAgent", false, false},
		{"ecs", "RunTask", true, false},
		{"ecs", "StopTask", true, false},
		{"ecs", "ListTasks", true, false},
		{"logs", "PutLogEvents", true, true},
		{"logs", "DeleteLogGroup", true, false},
		{"s3", "GetObject", true, false},
		{"sqs", "SendMessage", true, false},
		{"sts", "GetCallerIdentity", true, true},
		{"sts", "AssumeRole", true, false},
		{"iam", "GetRole", true, false},
		{"iam", "SimulatePrincipalPolicy", true, false},
	} {
		asks := func(who call.Identity) bool {
			return isAllowed(call.Call{Service: c.service, Operation: c.operation, Identity: who})
		}
		if !asks(call.Identity{}) || asks(task) != c.task || asks(session) != c.task || asks(node) != c.node {
			t.Errorf("%s:%s: a task may: %v, a node may: %v", c.service, c.operation, asks(task), asks(node))
		}
	}
}

// TestDeniedAction: a refusal names the action as policies do, which for CloudWatch isn't the name of its signatures.
func TestDeniedAction(t *testing.T) {
	who := call.Call{Service: "monitoring", Operation: "DeleteAlarms", Identity: call.Identity{Principal: "arn:x", Node: true}}
	err := gate{}.check(call.With(t.Context(), who), nil)
	if err == nil || !strings.Contains(err.Error(), " cloudwatch:DeleteAlarms ") {
		t.Errorf("got %v", err)
	}
}

// TestNamedOperationsExist: a name with a typing error would allow, or refuse, nothing.
func TestNamedOperationsExist(t *testing.T) {
	p := &Plane{}
	p.buildServices()
	known := map[string]bool{}
	for _, api := range apis(p.services()) {
		for _, o := range api.Service.Operations() {
			known[api.Name+":"+o.Name] = true
		}
	}
	for _, o := range ofNodes {
		if !known["ecs:"+o] {
			t.Errorf("ECS has no operation %s", o)
		}
	}
	for service, operations := range nodesMay {
		for _, o := range operations {
			if !known[service+":"+o] {
				t.Errorf("%s has no operation %s", service, o)
			}
		}
	}
}

// join gets a node's key for a new token with one use.
func (p *Plane) join(t *testing.T) enrollment.Key {
	t.Helper()
	token, secret, err := p.enrollment.Create(t.Context(), enrollment.NewToken{Seconds: 3600, Uses: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.enrollment.Join(t.Context(), token.ID, secret+"x"); !errors.Is(err, enrollment.ErrRefused) {
		t.Errorf("a wrong secret: %v", err)
	}
	key, err := p.enrollment.Join(t.Context(), token.ID, secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.enrollment.Join(t.Context(), token.ID, secret); !errors.Is(err, enrollment.ErrRefused) {
		t.Errorf("a token that was used up: %v", err)
	}
	return key
}

// TestNodeKey: a node's key is for the instance that it registered first, and ends with that.
func TestNodeKey(t *testing.T) {
	p := serveSigned(t)
	register := func(key enrollment.Key, arn *string) (string, error) {
		out, err := p.client(key.AccessKeyID, key.SecretAccessKey, "").RegisterContainerInstance(t.Context(),
			&awsecs.RegisterContainerInstanceInput{
				ContainerInstanceArn: arn,
				TotalResources: []types.Resource{
					{Name: aws.String("CPU"), IntegerValue: 1024},
					{Name: aws.String("MEMORY"), IntegerValue: 1024},
				},
			})
		if err != nil {
			return "", err
		}
		return *out.ContainerInstance.ContainerInstanceArn, nil
	}
	one, two := p.join(t), p.join(t)
	first, err := register(one, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := register(one, nil); err != nil || again != first {
		t.Errorf("registered again it is %q, %v", again, err)
	}
	if _, err := register(two, &first); code(err) != "AccessDeniedException" {
		t.Errorf("another node takes over an instance: %v", err)
	}
	second, err := register(two, nil)
	if err != nil || second == first {
		t.Fatalf("another node is %q, %v", second, err)
	}
	other := p.client(two.AccessKeyID, two.SecretAccessKey, "")
	if _, err := other.ListClusters(t.Context(), nil); code(err) != "AccessDeniedException" {
		t.Errorf("a node lists clusters: %v", err)
	}
	if got := p.gpus(t, two.AccessKeyID, two.SecretAccessKey); got != http.StatusForbidden {
		t.Errorf("a node that asks for everybody's GPUs gets %d", got)
	}
	if got := p.gpus(t, "AKID", "secret"); got != http.StatusOK {
		t.Errorf("the owner who asks for the GPUs gets %d", got)
	}
	_, err = other.DeregisterContainerInstance(t.Context(), &awsecs.DeregisterContainerInstanceInput{ContainerInstance: &first})
	if code(err) != "AccessDeniedException" {
		t.Errorf("a node deregisters another: %v", err)
	}
	owner := p.client("AKID", "secret", "")
	_, err = owner.DeregisterContainerInstance(t.Context(), &awsecs.DeregisterContainerInstanceInput{ContainerInstance: &second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.DiscoverPollEndpoint(t.Context(), nil); code(err) != "UnrecognizedClientException" {
		t.Errorf("the key of a deregistered instance: %v", err)
	}
}

// gpus asks for the table of GPUs with a key, and returns the answer's status.
func (p *Plane) gpus(t *testing.T, id, secret string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Endpoint()+"/pintle/gpus", nil)
	if err != nil {
		t.Fatal(err)
	}
	key := aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}
	const ofNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if err := v4.NewSigner().SignHTTP(t.Context(), key, r, ofNothing, "pintle", "us-east-1", time.Now()); err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close() //nolint:errcheck // it was only read
	return resp.StatusCode
}

// TestJoinTokens: a token says when it ends, ends when it's revoked, and its row gives nobody its secret.
func TestJoinTokens(t *testing.T) {
	p := serveSigned(t)
	const most = int64(enrollment.MaxLifetime / time.Second)
	const over = math.MaxInt64/int64(time.Second) + 1 // what no time.Duration can hold
	for _, n := range []enrollment.NewToken{
		{Seconds: 0, Uses: 1}, {Seconds: 3600, Uses: 0}, {Seconds: most + 1, Uses: 1}, {Seconds: 2 * over, Uses: 1},
		{Seconds: 3600, Uses: enrollment.MaxUses + 1},
	} {
		if _, _, err := p.enrollment.Create(t.Context(), n); err == nil {
			t.Errorf("a token for %+v was made", n)
		}
	}
	token, secret, err := p.enrollment.Create(t.Context(), enrollment.NewToken{Seconds: 3600, Uses: 2})
	if err != nil {
		t.Fatal(err)
	}
	if list := p.enrollment.List(); len(list) != 1 || strings.Contains(fmt.Sprintf("%+v", list[0]), secret) {
		t.Errorf("the tokens are %+v", list)
	}
	if err := p.enrollment.Revoke(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := p.enrollment.Join(t.Context(), token.ID, secret); !errors.Is(err, enrollment.ErrRefused) {
		t.Errorf("a revoked token: %v", err)
	}
	if err := p.enrollment.Revoke(t.Context(), token.ID); err == nil {
		t.Error("a token was revoked twice")
	}
}

// TestInstanceCredentials: the credentials of an instance's role are no node's, and end with the instance.
func TestInstanceCredentials(t *testing.T) {
	p := serveSigned(t)
	put := func(name ec2types.InstanceStateName) {
		statetest.Update(t, p.State, func(tx *state.Tx) {
			tx.Instances.Put(&state.Instance{Instance: ec2types.Instance{
				InstanceId: aws.String("i-1"), State: &ec2types.InstanceState{Name: name}, LaunchTime: aws.Time(time.Now()),
			}})
		})
	}
	c := p.issuer.IssueInstance("i-1", "arn:aws:iam::000000000000:role/worker", "")
	client := p.client(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)
	list := func() error {
		_, err := client.ListClusters(t.Context(), nil)
		return err
	}
	if got := code(list()); got != "ExpiredTokenException" {
		t.Errorf("an instance that there isn't gets %q", got)
	}
	put(ec2types.InstanceStateNameRunning)
	if err := list(); err != nil {
		t.Errorf("a running instance: %v", err)
	}
	_, err := client.DiscoverPollEndpoint(t.Context(), nil)
	if got := code(err); got != "AccessDeniedException" {
		t.Errorf("a task on it that asks where nodes connect gets %q", got)
	}
	put(ec2types.InstanceStateNameShuttingDown)
	if got := code(list()); got != "ExpiredTokenException" {
		t.Errorf("an instance that ends gets %q", got)
	}
}
