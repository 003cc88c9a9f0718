package cloudformation

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/appautoscaling"
	"github.com/pintle/pintle/internal/autoscaling"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/ec2"
	"github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/efs"
	"github.com/pintle/pintle/internal/elb"
	"github.com/pintle/pintle/internal/iam"
	"github.com/pintle/pintle/internal/servicediscovery"
	"github.com/pintle/pintle/internal/ssm"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/store/journaltest"
	"github.com/pintle/pintle/internal/vault/vaulttest"
	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// world is CloudFormation with ECS and Parameter Store, on a journal in memory.
type world struct {
	*Service
	t        testing.TB
	loop     *stacks.Loop
	wrote    []journaltest.Rows // after each write of the journal
	calls    map[call.Identity]bool
	services call.Caller
	texts    bucket        // templates in S3
	mute     bool          // whether new instances don't join their cluster
	later    time.Duration // how far the clock is ahead
}

// overheard notes who calls services.
type overheard struct {
	call.Caller
	mu *sync.Mutex
	by map[call.Identity]bool
}

func (o overheard) Call(ctx context.Context, in any) (any, error) {
	o.mu.Lock()
	o.by[call.From(ctx).Identity] = true
	o.mu.Unlock()
	return o.Caller.Call(ctx, in)
}

// exchange leads to services that are made after those that call them.
type exchange struct{ call.Caller }

// newWorld returns a world with more services than those whose rows are in the journal.
func newWorld(t testing.TB, rows journaltest.Rows, more ...model.API) *world {
	t.Helper()
	return newWorldWith(t, nil, rows, more...)
}

// newWorldWith returns a world that also has a store of metrics, which few need.
func newWorldWith(t testing.TB, kept *metrics.Store, rows journaltest.Rows, more ...model.API) *world {
	t.Helper()
	w := &world{t: t, calls: map[call.Identity]bool{}, texts: maps.Clone(nestable)}
	journal := journaltest.NewMemory(rows)
	journal.OnWrite(func(r journaltest.Rows) { w.wrote = append(w.wrote, r) })
	placing := scheduler.New(1)
	store := statetest.OpenOn(t, journal, placing)
	v := vaulttest.New(t, 7)
	owner := accounttest.New(func() time.Time { return time.Now().Add(w.later) })
	all := &exchange{}
	w.services = all
	w.loop = stacks.New(store, stacks.Options{Account: owner, Services: overheard{all, new(sync.Mutex), w.calls}, Vault: v, Log: slog.New(slog.DiscardHandler), Endpoint: "http://127.0.0.1:4566"})
	w.Service = New(store, w.loop, Options{Account: owner, Services: withObjects{all, w.texts}, Objects: w.texts})
	services, err := wire.New(wire.Options{}, append(more,
		API(w.Service),
		ssm.API(ssm.New(store, ssm.Options{Account: owner, Vault: v})),
		iam.API(iam.New(store, iam.Options{Account: owner, Vault: v})),
		ecr.API(ecr.New(store, ecr.Options{Account: owner})),
		efs.API(efs.New(store, efs.Options{Account: owner, Root: t.TempDir()})),
		elb.API(elb.New(store, elb.Options{Account: owner})),
		servicediscovery.API(servicediscovery.New(store, servicediscovery.Options{Account: owner})),
		ecs.API(ecs.New(store, placing, ecs.Options{Account: owner})),
		ec2.API(ec2.New(store, ec2.Options{Account: owner})),
		autoscaling.API(autoscaling.New(store, autoscaling.Options{Account: owner, Topics: anyTopic{}})),
		appautoscaling.API(appautoscaling.New(store, appautoscaling.Options{Account: owner})),
		cloudwatch.API(cloudwatch.New(kept, store, cloudwatch.Options{Account: owner})))...)
	if err != nil {
		t.Fatal(err)
	}
	all.Caller = services
	return w
}

// settle carries all operations out.
func (w *world) settle() {
	w.t.Helper()
	for quiet, rounds := 0, 0; quiet < 2; rounds++ { // a stack may have begun another one's operation in its last step
		quiet++
		for s := range w.store.View().Stacks.All() {
			moved, err := w.loop.Step(w.t.Context(), *s.StackId)
			if err != nil {
				w.t.Fatal(err)
			}
			if moved {
				quiet = 0
			}
		}
		if rounds > 1000 {
			w.t.Fatal("the operations never end")
		}
	}
}

var acknowledgedAll = []types.Capability{types.CapabilityCapabilityIam, types.CapabilityCapabilityNamedIam, types.CapabilityCapabilityAutoExpand}

func (w *world) create(name, text string) {
	w.t.Helper()
	in := &cloudformation.CreateStackInput{StackName: &name, TemplateBody: &text, Capabilities: acknowledgedAll}
	if _, err := w.CreateStack(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

func (w *world) become(name, text string) {
	w.t.Helper()
	in := &cloudformation.UpdateStackInput{StackName: &name, TemplateBody: &text, Capabilities: acknowledgedAll}
	if _, err := w.UpdateStack(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

func (w *world) remove(name string) {
	w.t.Helper()
	if _, err := w.DeleteStack(w.t.Context(), &cloudformation.DeleteStackInput{StackName: &name}); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

// summary tells what there is: stacks, their resources, and what they are.
func (w *world) summary() string {
	var lines []string
	v := w.store.View()
	for s := range v.Stacks.All() {
		lines = append(lines, fmt.Sprint("stack ", shape(*s.StackName), " ", s.StackStatus, " ", len(s.Outputs)))
		for r := range v.ResourcesOf(*s.StackId) {
			lines = append(lines, fmt.Sprint("resource ", r.Name, " ", r.Status, " ", r.Superseded, " ", r.Failed))
		}
		for _, o := range s.Outputs {
			lines = append(lines, "output "+*o.OutputKey+" "+shape(*o.OutputValue))
		}
	}
	for p := range v.Parameters.All() {
		version := v.ParameterVersions.Get(state.ParameterVersionKey(p.Name, p.Version))
		lines = append(lines, "parameter "+shape(p.Name)+" "+shape(version.Value))
	}
	for c := range v.Clusters.All() {
		lines = append(lines, fmt.Sprint("cluster ", shape(*c.ClusterName), " ", *c.Status))
	}
	for r := range v.Roles.All() {
		lines = append(lines, fmt.Sprint("role ", r.Attached, r.Inline))
	}
	for p := range v.InstanceProfiles.All() {
		lines = append(lines, fmt.Sprint("profile ", p.Role != ""))
	}
	for d := range v.TaskDefinitions.All() {
		lines = append(lines, fmt.Sprint("task definition ", shape(*d.Family), " ", d.Revision, " ", d.Status))
	}
	lines = append(lines, network(v)...)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// network tells what there is of EC2's network, besides what each VPC comes with.
func network(v *state.View) (lines []string) {
	for n := range v.VPCs.All() {
		lines = append(lines, fmt.Sprint("vpc ", *n.CidrBlock, " ", n.DNSHostnames, " ", len(n.Tags)))
	}
	for n := range v.Subnets.All() {
		lines = append(lines, fmt.Sprint("subnet ", *n.CidrBlock, " ", *n.MapPublicIpOnLaunch))
	}
	for g := range v.InternetGateways.All() {
		lines = append(lines, fmt.Sprint("internet gateway ", len(g.Attachments)))
	}
	for t := range v.RouteTables.All() {
		lines = append(lines, fmt.Sprint("route table ", len(t.Routes), " ", len(t.Associations)))
	}
	for a := range v.Addresses.All() {
		lines = append(lines, fmt.Sprint("address ", a.NetworkInterfaceId != nil))
	}
	for g := range v.NATGateways.All() {
		lines = append(lines, fmt.Sprint("nat gateway ", g.State))
	}
	for g := range v.SecurityGroups.All() {
		lines = append(lines, "security group "+shape(*g.GroupName))
		for r := range v.SecurityGroupRules.By(state.RulesByGroup, *g.GroupId) {
			lines = append(lines, fmt.Sprint("rule ", shape(*g.GroupName), " ", *r.IsEgress, " ", *r.IpProtocol, " ", *r.FromPort, " ", aws.ToString(r.CidrIpv4)))
		}
	}
	slices.Sort(lines)
	return lines
}

// shape is a generated name without what is random in it.
func shape(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '/' })
	for i, word := range words {
		if len(word) == 12 && strings.ToUpper(word) == word {
			words[i] = "*"
		}
	}
	return strings.Join(words, "-")
}

const before = `
Resources:
  A: {Type: AWS::SSM::Parameter, Properties: {Name: /a, Type: String, Value: one}}
  B: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !GetAtt A.Value}}
  Gone: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !Ref C}}
  C: {Type: AWS::ECS::Cluster, Properties: {ClusterName: first}}
  R:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Statement: [{Effect: Allow, Action: 'sts:AssumeRole', Principal: {Service: ecs-tasks.amazonaws.com}}]}
      ManagedPolicyArns: ['arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess']
      Policies: [{PolicyName: own, PolicyDocument: {Statement: [{Effect: Allow, Action: 'sqs:*', Resource: '*'}]}}]
  I: {Type: AWS::IAM::InstanceProfile, Properties: {Roles: [!Ref R]}}
  T:
    Type: AWS::ECS::TaskDefinition
    DependsOn: B
    Properties: {Family: f, ContainerDefinitions: [{Name: a, Image: i, Memory: '4', Environment: [{Name: C, Value: !GetAtt C.Arn}]}]}
  V: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/16, EnableDnsHostnames: true, Tags: [{Key: Name, Value: v}]}}
  N: {Type: AWS::EC2::Subnet, Properties: {VpcId: !Ref V, CidrBlock: 10.0.1.0/24, MapPublicIpOnLaunch: true}}
  G:
    Type: AWS::EC2::SecurityGroup
    Properties:
      GroupDescription: g
      VpcId: !Ref V
      SecurityGroupIngress: [{IpProtocol: tcp, FromPort: 80, ToPort: 80, CidrIp: 0.0.0.0/0}, {IpProtocol: tcp, FromPort: '22', ToPort: '22', CidrIp: !GetAtt V.CidrBlock}]
Outputs:
  T: {Value: !Ref T}
  B: {Value: !GetAtt B.Value}
`

// after changes A and with it B in place, replaces C and with it T, and N, drops Gone and adds New.
var after = strings.NewReplacer("10.0.1.0", "10.0.2.0", "FromPort: 80, ToPort: 80", "FromPort: 81, ToPort: 81", "Value: one", "Value: two", "S3ReadOnly", "S3Full", "PolicyName: own", "PolicyName: other", "first", "second", "Gone:", "New:").Replace(before)

// TestKilledAtEachWrite: whatever write of the journal was the last before a kill, the operation ends as it would have without.
func TestKilledAtEachWrite(t *testing.T) {
	bad := strings.Replace(after, "  C:", "  X: {Type: AWS::SSM::Parameter, DependsOn: T, Properties: {Name: taken, Type: String, Value: x}}\n  C:", 1)
	for _, c := range []struct {
		name   string
		begin  func(*world)
		want   types.StackStatus
		object string // what the nested stack's template is by then
	}{
		{"create", func(w *world) { w.create("s", before) }, types.StackStatusCreateComplete, ""},
		{"create, failing", func(w *world) { w.create("s", bad) }, types.StackStatusRollbackComplete, ""},
		{"update", func(w *world) { w.create("s", before); w.become("s", after) }, types.StackStatusUpdateComplete, ""},
		{"update, failing", func(w *world) { w.create("s", before); w.become("s", bad) }, types.StackStatusUpdateRollbackComplete, ""},
		{"delete", func(w *world) { w.create("s", before); w.remove("s") }, types.StackStatusDeleteComplete, ""},
		{"create, nested", func(w *world) { w.create("s", nesting) }, types.StackStatusCreateComplete, ""},
		{"create, failing in the nested one", func(w *world) { w.create("s", at("bad.yml")) }, types.StackStatusRollbackComplete, ""},
		{"update, nested", func(w *world) { w.create("s", nesting); w.become("s", at("two.yml")) }, types.StackStatusUpdateComplete, ""},
		{"update, failing in the nested one", func(w *world) { w.create("s", nesting); w.become("s", at("bad.yml")) }, types.StackStatusUpdateRollbackComplete, ""},
		{"update, failing after the nested one", func(w *world) { w.create("s", nesting); w.become("s", nestingBad) }, types.StackStatusUpdateRollbackComplete, ""},
		{"delete, nested", func(w *world) { w.create("s", nesting); w.remove("s") }, types.StackStatusDeleteComplete, ""},
		{"update, of a nested one's template", func(w *world) { w.create("s", nesting); w.put("two"); w.become("s", changed) }, types.StackStatusUpdateComplete, "two"},
		{"update, failing in a nested one's template", func(w *world) { w.create("s", nesting); w.put("bad"); w.become("s", changed) }, types.StackStatusUpdateRollbackComplete, "bad"},
		{"update, failing after a nested one's template", func(w *world) { w.create("s", deeper); w.put("two"); w.become("s", changedDeeperBad) }, types.StackStatusUpdateRollbackComplete, "two"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.take("taken")
			c.begin(w)
			want := w.summary()
			if s := find(w.store.View(), w.onlyStack()); s.StackStatus != c.want {
				t.Fatalf("the stack is %s: %s", s.StackStatus, aws.ToString(s.StackStatusReason))
			}
			for i, rows := range kills(w.wrote) {
				again := newWorld(t, rows)
				if s := again.onlyStack(); s == "" || !again.goesOn(s, c.want) {
					continue // killed before the last operation had begun
				}
				again.put(cmp.Or(c.object, "one"))
				again.settle()
				if got := again.summary(); got != want {
					t.Fatalf("killed after write %d of %d:\n%s\n\nwithout:\n%s", i+1, len(w.wrote), got, want)
				}
			}
		})
	}
}

// take makes a parameter that is nobody's.
func (w *world) take(name string) {
	statetest.Update(w.t, w.store, func(tx *state.Tx) {
		tx.Parameters.Put(&state.Parameter{Name: name, Version: 1})
		tx.ParameterVersions.Put(&state.ParameterVersion{Name: name, Version: 1, Value: "mine", Type: "String"})
	})
}

// onlyStack returns the ID of the stack that is in no other.
func (w *world) onlyStack() string {
	for s := range w.store.View().Stacks.All() {
		if s.ParentId == nil {
			return *s.StackId
		}
	}
	return ""
}

// goesOn reports whether a stack is in the operation that ends with a status.
func (w *world) goesOn(id string, end types.StackStatus) bool {
	verb, _, _ := strings.Cut(string(end), "_")
	status := string(w.store.View().Stacks.Get(id).StackStatus)
	if verb == "ROLLBACK" {
		return true
	}
	return strings.HasPrefix(status, verb)
}

// TestRollback: an update that fails leaves all as it was: what it changed, what it replaced and what it made.
func TestRollback(t *testing.T) {
	w := newWorld(t, nil)
	w.take("taken")
	w.create("s", before)
	was := w.standing()
	w.become("s", strings.Replace(after, "  C:", "  X: {Type: AWS::SSM::Parameter, DependsOn: T, Properties: {Name: taken, Type: String, Value: x}}\n  C:", 1))
	if got := w.standing(); got != was {
		t.Errorf("got:\n%s\nwas:\n%s", got, was)
	}
}

// standing tells what a stack's resources are, by their physical IDs.
func (w *world) standing() string {
	var lines []string
	v := w.store.View()
	for r := range v.StackResources.All() {
		lines = append(lines, fmt.Sprint(r.Name, " ", r.PhysicalID, " ", r.Attributes, " ", r.Superseded))
	}
	for p := range v.Parameters.All() {
		lines = append(lines, p.Name+" "+v.ParameterVersions.Get(state.ParameterVersionKey(p.Name, p.Version)).Value)
	}
	for c := range v.Clusters.All() {
		if *c.Status == "ACTIVE" {
			lines = append(lines, *c.ClusterName)
		}
	}
	for d := range v.TaskDefinitions.All() {
		if d.Status == "ACTIVE" {
			lines = append(lines, *d.TaskDefinitionArn)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestRefusedBeforeAnythingIsMade: what is wrong with a deployment is told at once, in CloudFormation's words, and nothing is kept.
func TestRefusedBeforeAnythingIsMade(t *testing.T) {
	w := newWorld(t, nil)
	for _, c := range []struct{ text, want string }{
		{"Resources: {X: {Type: AWS::SSM::Nothing}}", "Template format error: Unrecognized resource types: [AWS::SSM::Nothing]. Of the same service there are: AWS::SSM::Parameter"},
		{"Resources: {X: {Type: AWS::SQS::Queue, Properties: {Nope: 1}}}", "Properties validation failed for resource X with message:\n#: extraneous key [Nope] is not permitted"},
		{"Resources: {X: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: soon}}}", "Properties validation failed for resource X with message:\n#/DelaySeconds: expected type: Integer, found: String"},
		{"Resources: {X: {Type: AWS::SQS::Queue, Properties: {Tags: {a: b}}}}", "Properties validation failed for resource X with message:\n#/Tags: expected type: JSONArray, found: JSONObject"},
		{"Resources: {X: {Type: AWS::SSM::Parameter, Properties: {Type: String}}}", "Properties validation failed for resource X with message:\n#: required key [Value] not found"},
		{"Parameters: {P: {Type: String}}\nResources: {X: {Type: AWS::SQS::Queue}}", "Parameters: [P] must have values"},
		{"Parameters: {P: {Type: 'AWS::SSM::Parameter::Value<String>', Default: nope}}\nResources: {X: {Type: AWS::SQS::Queue}}", "Unable to fetch parameters [nope] from parameter store for this account."},
		{"Parameters: {P: {Type: String, Default: a}}\nRules: {R: {Assertions: [{Assert: !Equals [!Ref P, b], AssertDescription: not b}]}}\nResources: {X: {Type: AWS::SQS::Queue}}", "Template validation error: Rule R: not b"},
	} {
		_, err := w.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: &c.text})
		check(t, c.text, err, c.want)
	}
	_, err := w.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("1"), TemplateBody: aws.String(queue)})
	check(t, "a name", err, "1 validation error detected: Value '1' at 'stackName' failed to satisfy constraint: "+
		"Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*|arn:[-a-zA-Z0-9:/._+]*")
	for range w.store.View().Stacks.All() {
		t.Error("a refused call keeps a stack")
	}
}

// TestExecutedChangeSet: a change set that was executed says how that ended, and its name is free.
func TestExecutedChangeSet(t *testing.T) {
	w := newWorld(t, nil)
	execute := func(text string, kind types.ChangeSetType) (id string) {
		t.Helper()
		c, err := w.CreateChangeSet(t.Context(), &cloudformation.CreateChangeSetInput{
			ChangeSetName: aws.String("c"), StackName: aws.String("s"), TemplateBody: &text, ChangeSetType: kind,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.ExecuteChangeSet(t.Context(), &cloudformation.ExecuteChangeSetInput{ChangeSetName: c.Id}); err != nil {
			t.Fatal(err)
		}
		return *c.Id
	}
	status := func(id string) types.ExecutionStatus {
		out, err := w.DescribeChangeSet(t.Context(), &cloudformation.DescribeChangeSetInput{ChangeSetName: &id})
		if err != nil {
			return types.ExecutionStatus(err.Error())
		}
		if out.Capabilities == nil || out.RollbackConfiguration == nil {
			t.Error("a list or a structure that is always there is missing")
		}
		return out.ExecutionStatus
	}
	const (
		parameter = "Resources: {X: {Type: AWS::SSM::Parameter, Properties: {Name: x, Type: String, Value: v}}}"
		taken     = "Resources: {Y: {Type: AWS::SSM::Parameter, Properties: {Name: x, Type: String, Value: v}}, X: {Type: AWS::SSM::Parameter, Properties: {Name: y, Type: String, Value: v}}}"
	)
	first := execute(parameter, types.ChangeSetTypeCreate)
	if got := status(first); got != types.ExecutionStatusExecuteInProgress {
		t.Errorf("while it's executed: %s", got)
	}
	w.settle()
	if got := status(first); got != types.ExecutionStatusExecuteComplete {
		t.Errorf("executed: %s", got)
	}
	byName := &cloudformation.DescribeChangeSetInput{ChangeSetName: aws.String("c"), StackName: aws.String("s")}
	if out, err := w.DescribeChangeSet(t.Context(), byName); err != nil || out.ExecutionStatus != types.ExecutionStatusExecuteComplete {
		t.Errorf("by its name: %+v, %v", out, err)
	}
	stack, err := w.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: aws.String("s")})
	if err != nil || stack.Stacks[0].LastUpdatedTime == nil {
		t.Errorf("the stack has no time of an update: %v", err)
	}
	second := execute(taken, types.ChangeSetTypeUpdate)
	w.settle()
	if got := status(second); got != types.ExecutionStatusExecuteFailed {
		t.Errorf("failed: %s", got)
	}
	if got := status(first); !strings.Contains(string(got), "does not exist") {
		t.Errorf("the one before: %s", got)
	}
}

// TestChangeSet: what a change set says is what its execution does, and one that changes nothing has failed.
func TestChangeSet(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	w.changeSet(ctx, types.ChangeSetTypeCreate, before, "A Add , C Add , B Add , Gone Add , T Add , R Add , I Add , V Add , N Add , G Add ")
	if _, err := w.ExecuteChangeSet(ctx, &cloudformation.ExecuteChangeSetInput{ChangeSetName: aws.String("c"), StackName: aws.String("s")}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.changeSet(ctx, types.ChangeSetTypeUpdate, before, "")
	if _, err := w.DeleteChangeSet(ctx, &cloudformation.DeleteChangeSetInput{ChangeSetName: aws.String("c"), StackName: aws.String("s")}); err != nil {
		t.Fatal(err)
	}
	w.changeSet(ctx, types.ChangeSetTypeUpdate, after, "A Modify False, B Modify False, C Modify True, G Modify False, N Modify True, New Add , R Modify False, T Modify Conditional, Gone Remove ")
}

// TestChangeSetImports: a new stack may import what is exported only once its change set is there. If nobody does by then, it's rolled back.
func TestChangeSetImports(t *testing.T) {
	w := newWorld(t, nil)
	w.create("a", good)
	for _, name := range []string{"b", "c"} {
		_, err := w.CreateChangeSet(t.Context(), &cloudformation.CreateChangeSetInput{
			ChangeSetName: aws.String("c"), StackName: &name, TemplateBody: aws.String(value("!ImportValue e")), ChangeSetType: types.ChangeSetTypeCreate,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	execute := func(name string, want types.StackStatus) {
		in := &cloudformation.ExecuteChangeSetInput{StackName: &name, ChangeSetName: aws.String("c")}
		if _, err := w.ExecuteChangeSet(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if s := find(w.store.View(), name); s.StackStatus != want {
			t.Errorf("%s is %s", name, s.StackStatus)
		}
	}
	execute("b", types.StackStatusRollbackComplete)
	if got := w.reason(*find(w.store.View(), "b").StackId, types.ResourceStatusRollbackInProgress); got != "No export named e found. Rollback requested by user." {
		t.Errorf("the reason is %q", got)
	}
	w.become("a", exporting)
	execute("c", types.StackStatusCreateComplete)
}

// TestChangeSetOnce: a call that is sent again with its token makes no second change set, and isn't refused.
func TestChangeSetOnce(t *testing.T) {
	w := newWorld(t, nil)
	in := &cloudformation.CreateChangeSetInput{
		ChangeSetName: aws.String("c"), StackName: aws.String("s"), TemplateBody: aws.String(before), ChangeSetType: types.ChangeSetTypeCreate,
		Capabilities: acknowledgedAll, ClientToken: aws.String("once"),
	}
	first, err := w.CreateChangeSet(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.CreateChangeSet(t.Context(), in); err != nil || *again.Id != *first.Id || *again.StackId != *first.StackId {
		t.Errorf("got %v, %v", again, err)
	}
	in.ClientToken = aws.String("another")
	if _, err := w.CreateChangeSet(t.Context(), in); err == nil {
		t.Error("another call makes a change set of the same name")
	}
	in.ChangeSetName = aws.String("d")
	for what, change := range map[string]func(){
		"DeploymentMode":                   func() { in.DeploymentMode = types.DeploymentModeRevertDrift },
		"DeploymentConfig.Mode":            func() { in.DeploymentConfig = &types.DeploymentConfig{Mode: types.DeploymentConfigModeExpress} },
		"DeploymentConfig.DisableRollback": func() { in.DeploymentConfig = &types.DeploymentConfig{DisableRollback: aws.Bool(true)} },
	} {
		in.DeploymentMode, in.DeploymentConfig = "", nil
		change()
		if _, err := w.CreateChangeSet(t.Context(), in); err == nil || !strings.Contains(err.Error(), what+":") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// TestSummaryWarns: types that there are none of are warned of where a call asks for that.
func TestSummaryWarns(t *testing.T) {
	w := newWorld(t, nil)
	out, err := w.GetTemplateSummary(t.Context(), &cloudformation.GetTemplateSummaryInput{
		TemplateBody:          aws.String("Resources: {Q: {Type: AWS::SQS::Queue}, X: {Type: AWS::No::Such}}"),
		TemplateSummaryConfig: &types.TemplateSummaryConfig{TreatUnrecognizedResourceTypesAsWarnings: aws.Bool(true)},
	})
	if err != nil || !slices.Equal(out.Warnings.UnrecognizedResourceTypes, []string{"AWS::No::Such"}) {
		t.Errorf("got %v, %v", out, err)
	}
}

// changeSet creates a change set and compares what it would change.
func (w *world) changeSet(ctx context.Context, kind types.ChangeSetType, text, want string) {
	w.t.Helper()
	in := &cloudformation.CreateChangeSetInput{ChangeSetName: aws.String("c"), StackName: aws.String("s"), TemplateBody: &text, ChangeSetType: kind, Capabilities: acknowledgedAll}
	if _, err := w.CreateChangeSet(ctx, in); err != nil {
		w.t.Fatal(err)
	}
	out, err := w.DescribeChangeSet(ctx, &cloudformation.DescribeChangeSetInput{ChangeSetName: aws.String("c"), StackName: aws.String("s")})
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, c := range out.Changes {
		got = append(got, fmt.Sprint(*c.ResourceChange.LogicalResourceId, " ", c.ResourceChange.Action, " ", c.ResourceChange.Replacement))
	}
	wanted := strings.Split(want, ", ")
	slices.Sort(wanted)
	slices.Sort(got)
	if strings.Join(got, ", ") != strings.Join(wanted, ", ") {
		w.t.Errorf("got %v, want %v", got, wanted)
	}
	if failed := out.Status == types.ChangeSetStatusFailed; failed != (want == "") {
		w.t.Errorf("the change set is %s: %s", out.Status, aws.ToString(out.StatusReason))
	}
}

// TestWhoBegins: a stack's calls are made by whoever began the operation, so that a task gets no more done by a stack than by itself.
func TestWhoBegins(t *testing.T) {
	w := newWorld(t, nil)
	task := call.Identity{Principal: "arn:aws:sts::000000000000:assumed-role/r/t", Task: "arn:task", Role: "arn:role"}
	ctx := call.With(t.Context(), call.Call{Identity: task})
	text := "Resources: {C: {Type: AWS::ECS::Cluster}}"
	if _, err := w.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: &text}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if !w.calls[task] || len(w.calls) != 1 {
		t.Errorf("calls were made by %v", w.calls)
	}
}

// TestParameterOfOutputAlone: a parameter that only an output uses is reason enough for an update.
func TestParameterOfOutputAlone(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", "Parameters: {P: {Type: String, Default: a}}\nResources: {C: {Type: AWS::ECS::Cluster}}\nOutputs: {O: {Value: !Ref P}}")
	update := func(value string) error {
		_, err := w.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{
			StackName: aws.String("s"), UsePreviousTemplate: aws.Bool(true),
			Parameters: []types.Parameter{{ParameterKey: aws.String("P"), ParameterValue: &value}},
		})
		w.settle()
		return err
	}
	check(t, "the same", update("a"), "No updates are to be performed.")
	if err := update("b"); err != nil {
		t.Fatal(err)
	}
	if s := find(w.store.View(), "s"); *s.Outputs[0].OutputValue != "b" {
		t.Errorf("the output is %s", *s.Outputs[0].OutputValue)
	}
}

// TestMetadataAlone: an update may change no more than a resource's metadata, which is an update of the resource, or an output.
func TestMetadataAlone(t *testing.T) {
	const text = "Resources: {C: {Type: AWS::ECS::Cluster, Metadata: {a: b}}}\nOutputs: {O: {Value: one}}"
	w := newWorld(t, nil)
	w.create("s", text)
	_, err := w.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{StackName: aws.String("s"), TemplateBody: aws.String(text)})
	check(t, "nothing", err, "No updates are to be performed.")
	w.become("s", strings.Replace(text, "a: b", "a: c", 1))
	out, err := w.DescribeStackResource(t.Context(), &cloudformation.DescribeStackResourceInput{StackName: aws.String("s"), LogicalResourceId: aws.String("C")})
	if err != nil || *out.StackResourceDetail.Metadata != `{"a":"c"}` || out.StackResourceDetail.ResourceStatus != types.ResourceStatusUpdateComplete {
		t.Errorf("got %+v, %v", out, err)
	}
	w.become("s", strings.NewReplacer("a: b", "a: c", "one", "two").Replace(text))
	w.expect(types.StackStatusUpdateComplete)
	if s := find(w.store.View(), "s"); *s.Outputs[0].OutputValue != "two" {
		t.Errorf("the output is %s", *s.Outputs[0].OutputValue)
	}
}

// TestObsoleteChangeSet: an update leaves change sets that are about the stack as it was, and that can't be executed any more.
func TestObsoleteChangeSet(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", sound)
	set, err := w.CreateChangeSet(t.Context(), &cloudformation.CreateChangeSetInput{
		StackName: aws.String("s"), ChangeSetName: aws.String("c"), TemplateBody: aws.String(strings.Replace(sound, "one", "two", 1)),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.become("s", strings.Replace(sound, "one", "three", 1))
	list, err := w.ListChangeSets(t.Context(), &cloudformation.ListChangeSetsInput{StackName: aws.String("s")})
	if err != nil || len(list.Summaries) != 1 || list.Summaries[0].ExecutionStatus != types.ExecutionStatusObsolete {
		t.Errorf("got %+v, %v", list, err)
	}
	_, err = w.ExecuteChangeSet(t.Context(), &cloudformation.ExecuteChangeSetInput{ChangeSetName: set.Id})
	if want := "ChangeSet [" + *set.Id + "] cannot be executed in its current execution status of [OBSOLETE]"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
