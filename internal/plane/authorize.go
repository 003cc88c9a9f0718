package plane

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"

	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecs/taskvolume"
	"github.com/pintle/pintle/internal/iam"
	"github.com/pintle/pintle/internal/iam/authorize"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// gate returns what decides who may make a call.
func (p *Plane) gate() (gate, error) {
	table, err := authorize.New(p.options.Account, p.options.Region)
	return gate{p, table}, err
}

// restrictedBy returns the APIs with each operation refused to those who may not call it.
func restrictedBy(g gate, apis []model.API) []model.API {
	for i, api := range apis {
		apis[i].Service = restrictedService{api.Service, g}
	}
	return apis
}

// restrictedService refuses calls of a service.
type restrictedService struct {
	call.Service
	gate gate
}

// Operations returns the service's operations, each behind the check.
func (s restrictedService) Operations() []call.Operation {
	operations := slices.Clone(s.Service.Operations())
	for i, o := range operations {
		operations[i].Call = func(ctx context.Context, in any) (any, error) {
			if err := s.gate.check(ctx, in); err != nil {
				return nil, err
			}
			return o.Call(ctx, in)
		}
	}
	return operations
}

// gate decides who may make a call: by what kind of caller it is, and by policies. It asks the services for what ARNs lack and for the
// resources' policies, as their clients would.
type gate struct {
	plane *Plane
	table *authorize.Table
}

// check refuses a call that its caller may not make. Nodes are bound by what they are, and the account's owner by nothing.
func (g gate) check(ctx context.Context, in any) error {
	c := call.From(ctx)
	if !isAllowed(c) {
		return refusal.New("AccessDeniedException", "%s", account.NotAuthorized(c.Principal, authorize.Action(c.Service, c.Operation), "*", ""))
	}
	if c.Node || c.IsOwner() {
		return nil
	}
	if c.Task != "" {
		if why := handsOut(g.plane.State.View(), c.Role, in); why != "" {
			return refusal.New("AccessDeniedException", "%s", account.NotAuthorized(c.Principal, "iam:PassRole", "*", why))
		}
	}
	who := g.plane.IAM.PermissionsOf(c.Identity)
	if who.Unlimited {
		return nil
	}
	known := g.context(c, in, who)
	for _, n := range g.needs(ctx, c, in, who) {
		if n.PassedTo != "" {
			known.Set("iam:PassedToService", n.PassedTo)
		}
		if d := g.decide(ctx, n, who, known); d.Effect != policy.Allowed {
			return refusal.New("AccessDeniedException", "%s", authorize.Message(c.Service, c.Principal, n, d))
		}
	}
	return g.checkWritings(ctx, c, in, who, known)
}

// decide evaluates what a call needs. A role that is a name alone is limited by nothing, so nobody who is limited may pass one.
func (g gate) decide(ctx context.Context, n authorize.Need, who iam.Permissions, known policy.Context) policy.Decision {
	if n.PassedTo != "" && g.plane.IAM.RoleID(n.Resource) == "" && !isScalersOwn(n) {
		return policy.Decision{Missing: policy.OfIdentity}
	}
	all := who.Policies
	all.Resource = g.resourcePolicy(ctx, n.Resource)
	if asksForTags(all) {
		tagged, err := g.withTags(ctx, n.Resource, known)
		if err != nil {
			return policy.Decision{Missing: policy.OfIdentity} // a deny may depend on what can't be read
		}
		known = tagged
	}
	return policy.Evaluate(policy.Request{
		Principal: who.Principal,
		Action:    n.Action,
		Resource:  n.Resource,
		Context:   known,
	}, all)
}

// isScalersOwn reports whether Application Auto Scaling gets a role that is linked to it. As on AWS that role needn't be there yet, and nobody
// has anything of it. The CDK names it for each scalable target.
func isScalersOwn(n authorize.Need) bool {
	const scaler = "application-autoscaling.amazonaws.com"
	_, role, isLinked := strings.Cut(n.Resource, ":role/aws-service-role/")
	service, _, _ := strings.Cut(role, "/")
	return isLinked && n.PassedTo == scaler && strings.HasSuffix(service, "."+scaler)
}

// context returns what is known of a call: of its caller, of how it came, and of its input.
func (g gate) context(c call.Call, in any, who iam.Permissions) policy.Context {
	known := g.table.Keys(authorize.Call{Service: c.Service, Operation: c.Operation, Input: in, User: who.User})
	maps.Copy(known, who.Context)
	if host, _, err := net.SplitHostPort(c.Peer); err == nil {
		known.Set("aws:SourceIp", host)
	}
	known.Set("aws:RequestedRegion", g.plane.options.Region)
	known.Set("aws:ResourceAccount", g.plane.options.Account)
	known.Set("aws:SecureTransport", "false")
	if strings.HasPrefix(c.Endpoint, "https://") {
		known.Set("aws:SecureTransport", "true")
	}
	known.Set("aws:ViaAWSService", "false")
	if c.Via != "" {
		known.Set("aws:ViaAWSService", "true")
		known.Set("aws:CalledVia", c.Via+".amazonaws.com")
	}
	return known
}

// needs returns what a call needs, on complete ARNs.
func (g gate) needs(ctx context.Context, c call.Call, in any, who iam.Permissions) (all []authorize.Need) {
	found := g.table.Needs(authorize.Call{Service: c.Service, Operation: c.Operation, Input: in, User: who.User})
	for _, n := range found {
		n.Resource = g.named(n.Resource, in)
		for _, arn := range g.complete(ctx, n) {
			n.Resource = arn
			all = append(all, n)
		}
	}
	return append(append(all, g.passed(ctx, in)...), g.passedToInstances(in)...)
}

// named returns the ARN of a group or of a launch template that a call names by what isn't in the ARN: by one of the group's instances, or by
// the template's name. Other ARNs are as they were.
func (g gate) named(arn string, in any) string {
	v := g.plane.State.View()
	if q := authorize.Value(in, "Qualifier"); q != "" && strings.HasPrefix(arn, "arn:aws:lambda:") && strings.Count(arn, ":") == 6 {
		return arn + ":" + q
	}
	kind, isPattern := strings.CutSuffix(arn, "/*")
	switch {
	case !isPattern:
	case strings.HasSuffix(kind, ":launch-template"):
		if t := v.FindLaunchTemplate("", authorize.Value(in, "LaunchTemplateName", "LaunchTemplate.LaunchTemplateName")); t != nil {
			return kind + "/" + *t.LaunchTemplateId
		}
	case strings.HasSuffix(kind, ":autoScalingGroupName"):
		if i := v.Instances.Get(authorize.Value(in, "InstanceId")); i != nil && i.Member != nil {
			return kind + "/" + i.Member.Group
		}
	}
	return arn
}

// complete returns the ARNs that a need's resource stands for: with the path of a role, the random characters of a secret, the revision of a
// task definition; each secret; or the stack of a change set, which is what CloudFormation's permissions are on.
func (g gate) complete(ctx context.Context, n authorize.Need) []string {
	service, resource, _ := strings.Cut(strings.TrimPrefix(n.Resource, "arn:aws:"), ":")
	switch {
	case service == "iam":
		return []string{g.plane.IAM.Complete(n.Resource)}
	case service == "secretsmanager" && strings.HasSuffix(resource, ":secret:*"):
		arns := []string{n.Resource}
		for s := range g.plane.State.View().Secrets.All() {
			arns = append(arns, s.ARN)
		}
		return arns
	case service == "secretsmanager" && n.Action != "secretsmanager:CreateSecret":
		out, err := g.plane.SecretsManager.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &n.Resource})
		if err != nil {
			return []string{n.Resource + "-??????"}
		}
		return []string{*out.ARN}
	case service == "cloudformation" && strings.Contains(resource, ":changeSet/"):
		if c := g.plane.State.View().ChangeSets.Get(n.Resource); c != nil {
			return []string{c.Stack[:strings.LastIndexByte(c.Stack, '/')] + "/*"}
		}
	case service == "events": // a rule's ARN has no name of a bus if that is the default one
		return []string{strings.Replace(n.Resource, ":rule/"+state.DefaultBus+"/", ":rule/", 1)}
	case service == "ecs" && strings.Contains(resource, ":task-definition/") && !strings.HasSuffix(resource, "*"):
		_, name, _ := strings.Cut(resource, ":task-definition/")
		out, err := g.plane.ECS.DescribeTaskDefinition(ctx, &awsecs.DescribeTaskDefinitionInput{TaskDefinition: &name})
		if err == nil {
			return []string{*out.TaskDefinition.TaskDefinitionArn}
		}
	}
	return []string{n.Resource}
}

// passed returns the roles of the task definition that a call runs, which ECS passes to the tasks, and those with which ECS makes their volumes.
func (g gate) passed(ctx context.Context, in any) (all []authorize.Need) {
	var name *string
	var volumes []taskvolume.Configuration
	switch in := in.(type) {
	case *awsecs.RunTaskInput:
		name, volumes = in.TaskDefinition, taskvolume.OfTask(in.VolumeConfigurations)
	case *awsecs.StartTaskInput:
		name, volumes = in.TaskDefinition, taskvolume.OfTask(in.VolumeConfigurations)
	case *awsecs.CreateServiceInput:
		name, volumes = in.TaskDefinition, taskvolume.OfService(in.VolumeConfigurations)
	case *awsecs.UpdateServiceInput:
		name, volumes = in.TaskDefinition, taskvolume.OfService(in.VolumeConfigurations)
	case *awsecs.CreateTaskSetInput:
		name = in.TaskDefinition
	}
	for _, v := range volumes {
		if v.EBS != nil && v.EBS.RoleArn != nil {
			all = append(all, authorize.Need{Action: "iam:PassRole", Resource: *v.EBS.RoleArn, PassedTo: "ecs.amazonaws.com"})
		}
	}
	if name == nil {
		return all
	}
	out, err := g.plane.ECS.DescribeTaskDefinition(ctx, &awsecs.DescribeTaskDefinitionInput{TaskDefinition: name})
	if err != nil {
		return all // the call is refused for the same reason
	}
	for _, role := range []*string{out.TaskDefinition.TaskRoleArn, out.TaskDefinition.ExecutionRoleArn} {
		if role != nil && *role != "" {
			all = append(all, authorize.Need{Action: "iam:PassRole", Resource: *role, PassedTo: "ecs-tasks.amazonaws.com"})
		}
	}
	return all
}
