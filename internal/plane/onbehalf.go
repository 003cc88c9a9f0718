package plane

import (
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/pintle/pintle/internal/elb/balancers"
	"github.com/pintle/pintle/internal/iam"
	"github.com/pintle/pintle/internal/iam/authorize"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// Some calls have a service of AWS's write into buckets and queues from then on: what a caller may not write, it must not have written.

// writing is what a service of AWS's is to write.
type writing struct {
	authorize.Need
	service string // such as s3.amazonaws.com
	role    string // the ARN of a role as which it's written, whose permission will do; empty for none
	source  string // the ARN of what makes it write, as aws:SourceArn has it
}

// writings returns what a call has written on its caller's behalf.
func (g gate) writings(in any) (all []writing) {
	owner := g.plane.account()
	switch in := in.(type) {
	case *cloudwatchlogs.CreateExportTaskInput:
		object := path.Join(aws.ToString(in.Destination), aws.ToString(in.DestinationPrefix)) + "/*"
		all = append(all, writing{
			Need:    authorize.Need{Action: "s3:PutObject", Resource: "arn:aws:s3:::" + object},
			service: "logs.amazonaws.com",
			source:  owner.ARN("logs", "log-group:"+aws.ToString(in.LogGroupName)),
		})
	case *cloudwatchlogs.PutSubscriptionFilterInput:
		if source := owner.ARN("logs", "log-group:"+aws.ToString(in.LogGroupName)+":*"); strings.Contains(aws.ToString(in.DestinationArn), ":lambda:") {
			all = append(all, toFunction(aws.ToString(in.DestinationArn), "logs", source))
			break
		}
		all = append(all, writing{
			Need:    authorize.Need{Action: "sqs:SendMessage", Resource: aws.ToString(in.DestinationArn)},
			service: "logs.amazonaws.com",
			source:  owner.ARN("logs", "log-group:"+aws.ToString(in.LogGroupName)),
		})
	case *elasticloadbalancingv2.ModifyLoadBalancerAttributesInput:
		all = append(all, g.accessLogs(in)...)
	case *awssns.SubscribeInput:
		if aws.ToString(in.Protocol) == "sqs" {
			all = append(all, toQueue(aws.ToString(in.Endpoint), aws.ToString(in.TopicArn)))
		}
		if aws.ToString(in.Protocol) == "lambda" {
			all = append(all, toFunction(aws.ToString(in.Endpoint), "sns", aws.ToString(in.TopicArn)))
		}
		if policy, given := in.Attributes["RedrivePolicy"]; given {
			all = append(all, toDeadLetters(policy, aws.ToString(in.TopicArn))...)
		}
	case *awssns.SetSubscriptionAttributesInput:
		if aws.ToString(in.AttributeName) == "RedrivePolicy" {
			topic := authorize.TopicOf(aws.ToString(in.SubscriptionArn))
			all = append(all, toDeadLetters(aws.ToString(in.AttributeValue), topic)...)
		}
	case *awss3.PutBucketNotificationConfigurationInput:
		if in.NotificationConfiguration == nil {
			break
		}
		for _, q := range in.NotificationConfiguration.QueueConfigurations {
			all = append(all, writing{
				Need:    authorize.Need{Action: "sqs:SendMessage", Resource: aws.ToString(q.QueueArn)},
				service: "s3.amazonaws.com",
				source:  "arn:aws:s3:::" + aws.ToString(in.Bucket),
			})
		}
		for _, f := range in.NotificationConfiguration.LambdaFunctionConfigurations {
			all = append(all, toFunction(aws.ToString(f.LambdaFunctionArn), "s3", "arn:aws:s3:::"+aws.ToString(in.Bucket)))
		}
		for _, t := range in.NotificationConfiguration.TopicConfigurations {
			all = append(all, toDestinations([]string{aws.ToString(t.TopicArn)}, "s3", "arn:aws:s3:::"+aws.ToString(in.Bucket))...)
		}
	}
	return append(append(all, g.publications(in)...), g.ofFunctions(in)...)
}

// accessLogs returns what a load balancer with other attributes writes: its access log, if it has one and they say something of it.
func (g gate) accessLogs(in *elasticloadbalancingv2.ModifyLoadBalancerAttributesInput) []writing {
	row := g.plane.State.View().LoadBalancers.Get(aws.ToString(in.LoadBalancerArn))
	if row == nil {
		return nil
	}
	after := state.LoadBalancer{Attributes: maps.Clone(row.Attributes)}
	if after.Attributes == nil {
		after.Attributes = map[string]string{}
	}
	isGiven := false
	for _, a := range in.Attributes {
		after.Attributes[aws.ToString(a.Key)] = aws.ToString(a.Value)
		isGiven = isGiven || strings.HasPrefix(aws.ToString(a.Key), "access_logs.s3.")
	}
	bucket, prefix, enabled := after.AccessLogs()
	if !enabled || !isGiven {
		return nil
	}
	return []writing{{
		Need: authorize.Need{
			Action:   "s3:PutObject",
			Resource: "arn:aws:s3:::" + bucket + "/" + balancers.Prefix(prefix, g.plane.account()) + "*",
		},
		service: "logdelivery.elasticloadbalancing.amazonaws.com",
		source:  aws.ToString(in.LoadBalancerArn),
	}}
}

// publications returns what a call has services tell topics and queues on its caller's behalf.
func (g gate) publications(in any) (all []writing) {
	owner := g.plane.account()
	switch in := in.(type) {
	case *scheduler.CreateScheduleInput:
		all = append(all, toUndelivered(in.Target, owner.ARN("scheduler", "schedule/*"))...)
	case *scheduler.UpdateScheduleInput:
		all = append(all, toUndelivered(in.Target, owner.ARN("scheduler", "schedule/*"))...)
	case *eventbridge.PutTargetsInput:
		all = append(all, g.byRule(in)...)
	case *autoscaling.PutNotificationConfigurationInput:
		all = append(all, toDestinations([]string{aws.ToString(in.TopicARN)}, "autoscaling", g.groupARN(in.AutoScalingGroupName))...)
	case *autoscaling.PutLifecycleHookInput:
		all = append(all, g.byHook(in.NotificationTargetARN, in.RoleARN, in.AutoScalingGroupName)...)
	case *autoscaling.CreateAutoScalingGroupInput:
		for _, h := range in.LifecycleHookSpecificationList {
			all = append(all, g.byHook(h.NotificationTargetARN, h.RoleARN, in.AutoScalingGroupName)...)
		}
	case *awsecs.CreateServiceInput:
		all = append(append(all, shifts(in.LoadBalancers)...), invocations(in.DeploymentConfiguration)...)
	case *awsecs.UpdateServiceInput:
		all = append(append(all, shifts(in.LoadBalancers)...), invocations(in.DeploymentConfiguration)...)
	case *cloudwatch.PutMetricAlarmInput:
		actions := slices.Concat(in.AlarmActions, in.OKActions, in.InsufficientDataActions)
		all = append(all, toDestinations(actions, "cloudwatch", owner.ARN("cloudwatch", "alarm:"+aws.ToString(in.AlarmName)))...)
	case *cloudwatch.PutCompositeAlarmInput:
		actions := slices.Concat(in.AlarmActions, in.OKActions, in.InsufficientDataActions)
		all = append(all, toDestinations(actions, "cloudwatch", owner.ARN("cloudwatch", "alarm:"+aws.ToString(in.AlarmName)))...)
	case *cloudformation.CreateStackInput:
		all = append(all, toDestinations(in.NotificationARNs, "cloudformation", g.stackARN(in.StackName))...)
	case *cloudformation.UpdateStackInput:
		all = append(all, toDestinations(in.NotificationARNs, "cloudformation", g.stackARN(in.StackName))...)
	case *cloudformation.CreateChangeSetInput:
		all = append(all, toDestinations(in.NotificationARNs, "cloudformation", g.stackARN(in.StackName))...)
	}
	return all
}

// toUndelivered returns the dead-letter queue of a schedule's target. The target itself is called as the schedule's role.
func toUndelivered(t *schedulertypes.Target, source string) []writing {
	if t == nil || t.DeadLetterConfig == nil {
		return nil
	}
	return toDestinations([]string{aws.ToString(t.DeadLetterConfig.Arn)}, "scheduler", source)
}

// byRule returns what a rule sends queues, topics and log groups, as the targets' roles or as the account, and what it can't deliver to
// dead-letter queues. What needs a role is asked when it's sent.
func (g gate) byRule(in *eventbridge.PutTargetsInput) (all []writing) {
	bus := aws.ToString(in.EventBusName)
	if name, isARN := g.plane.account().ResourceOf("events", "event-bus/", bus); isARN {
		bus = name
	}
	rule := "rule/"
	if bus != "" && bus != state.DefaultBus {
		rule += bus + "/"
	}
	rule = g.plane.account().ARN("events", rule+aws.ToString(in.Rule))
	for _, t := range in.Targets {
		to := toDestinations([]string{aws.ToString(t.Arn)}, "events", rule)
		if name, isBus := g.plane.account().ResourceOf("events", "event-bus/", aws.ToString(t.Arn)); isBus {
			to = append(to, writing{
				Need:    authorize.Need{Action: "events:PutEvents", Resource: g.plane.account().ARN("events", "event-bus/"+name)},
				service: "events.amazonaws.com",
				source:  rule,
			})
		}
		if name, isGroup := g.plane.account().ResourceOf("logs", "log-group:", aws.ToString(t.Arn)); isGroup {
			to = append(to, writing{
				Need:    authorize.Need{Action: "logs:PutLogEvents", Resource: g.plane.account().ARN("logs", "log-group:"+name)},
				service: "events.amazonaws.com",
				source:  rule,
			})
		}
		for i := range to {
			to[i].role = aws.ToString(t.RoleArn)
		}
		all = append(all, to...)
		if t.DeadLetterConfig != nil {
			all = append(all, toDestinations([]string{aws.ToString(t.DeadLetterConfig.Arn)}, "events", rule)...)
		}
	}
	return all
}

// byHook returns what a lifecycle hook of a group tells, as its role.
func (g gate) byHook(target, role, group *string) []writing {
	all := toDestinations([]string{aws.ToString(target)}, "autoscaling", g.groupARN(group))
	for i := range all {
		all[i].role = aws.ToString(role)
	}
	return all
}

// shifts returns the rules and listeners that a service changes as it shifts traffic, as the role of its load balancer.
func shifts(balancers []ecstypes.LoadBalancer) (all []writing) {
	for _, b := range balancers {
		a := b.AdvancedConfiguration
		if a == nil {
			continue
		}
		for _, arn := range []string{aws.ToString(a.ProductionListenerRule), aws.ToString(a.TestListenerRule)} {
			need := authorize.Need{Action: "elasticloadbalancing:ModifyRule", Resource: arn}
			switch {
			case arn == "":
				continue
			case !strings.Contains(arn, ":listener-rule/"):
				need.Action = "elasticloadbalancing:ModifyListener"
			}
			all = append(all, writing{Need: need, service: "ecs.amazonaws.com", role: aws.ToString(a.RoleArn)})
		}
	}
	return all
}

// invocations returns the functions that a service's deployments invoke, as the roles of its lifecycle hooks.
func invocations(c *ecstypes.DeploymentConfiguration) (all []writing) {
	if c == nil {
		return nil
	}
	for _, h := range c.LifecycleHooks {
		if h.HookTargetArn != nil {
			all = append(all, toFunction(*h.HookTargetArn, "ecs", ""))
			all[len(all)-1].role = aws.ToString(h.RoleArn)
		}
	}
	return all
}

// groupARN returns the ARN of an Auto Scaling group, or what all those of the name match, if there is none yet.
func (g gate) groupARN(name *string) string {
	if group := g.plane.State.View().AutoScalingGroups.Get(aws.ToString(name)); group != nil {
		return *group.AutoScalingGroupARN
	}
	return g.plane.account().ARN("autoscaling", "autoScalingGroup:*:autoScalingGroupName/"+aws.ToString(name))
}

// toDestinations returns that a service tells topics and queues. Other destinations aren't looked at here.
func toDestinations(destinations []string, service, source string) (all []writing) {
	for _, arn := range destinations {
		need := authorize.Need{Resource: arn}
		by := service
		switch parts := strings.SplitN(arn, ":", 4); {
		case len(parts) == 4 && parts[0] == "arn" && parts[2] == "sns":
			need.Action = "sns:Publish"
		case len(parts) == 4 && parts[0] == "arn" && parts[2] == "sqs":
			need.Action = "sqs:SendMessage"
		case len(parts) == 4 && parts[0] == "arn" && parts[2] == "lambda":
			if need.Action = invokeFunction; service == "cloudwatch" { // "Invoke a Lambda function from an alarm"
				by = "lambda.alarms.cloudwatch"
			}
		default:
			continue
		}
		all = append(all, writing{Need: need, service: by + ".amazonaws.com", source: source})
	}
	return all
}

// stackARN returns what the ARNs match of all stacks with the name that a call has, or with that in the ARN that it has.
func (g gate) stackARN(nameOrID *string) string {
	name := aws.ToString(nameOrID)
	if _, rest, isARN := strings.Cut(name, ":stack/"); isARN {
		name, _, _ = strings.Cut(rest, "/")
	}
	return g.plane.account().ARN("cloudformation", "stack/"+name+"/*")
}

// invokeFunction is what it takes to have a function run.
const invokeFunction = "lambda:InvokeFunction"

// toFunction returns that a service has a function run because of a resource.
func toFunction(function, service, source string) writing {
	return writing{Need: authorize.Need{Action: invokeFunction, Resource: function}, service: service + ".amazonaws.com", source: source}
}

// ofFunctions returns what is written for functions, as their roles: their dead letters, and what came of their asynchronous invocations; and
// what they take from queues.
func (g gate) ofFunctions(in any) []writing {
	var to []string
	var name, role *string
	switch in := in.(type) {
	case *awslambda.CreateFunctionInput:
		if name, role = in.FunctionName, in.Role; in.DeadLetterConfig != nil {
			to = append(to, aws.ToString(in.DeadLetterConfig.TargetArn))
		}
	case *awslambda.UpdateFunctionConfigurationInput:
		if name, role = in.FunctionName, in.Role; in.DeadLetterConfig != nil {
			to = append(to, aws.ToString(in.DeadLetterConfig.TargetArn))
		}
	case *awslambda.PutFunctionEventInvokeConfigInput:
		name, to = in.FunctionName, destinations(in.DestinationConfig)
	case *awslambda.UpdateFunctionEventInvokeConfigInput:
		name, to = in.FunctionName, destinations(in.DestinationConfig)
	case *awslambda.CreateEventSourceMappingInput:
		return g.mapping(in.EventSourceArn, in.FunctionName)
	case *awslambda.UpdateEventSourceMappingInput:
		if row := g.plane.State.View().EventSources.Get(aws.ToString(in.UUID)); row != nil && in.FunctionName != nil {
			return g.mapping(row.EventSourceArn, in.FunctionName)
		}
	}
	all := toDestinations(to, "lambda", g.plane.account().ARN("lambda", "function:"+aws.ToString(name)))
	for i := range all {
		if all[i].role = aws.ToString(role); role == nil {
			all[i].role = g.roleOf(name)
		}
	}
	return all
}

// mapping returns what a function takes from a queue, as its role.
func (g gate) mapping(queue, function *string) (all []writing) {
	for _, action := range []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"} {
		need := authorize.Need{Action: action, Resource: aws.ToString(queue)}
		all = append(all, writing{Need: need, service: "lambda.amazonaws.com", role: g.roleOf(function)})
	}
	return all
}

// roleOf returns the role of a function, or "".
func (g gate) roleOf(function *string) string {
	out, err := g.plane.Lambda.GetFunctionConfiguration(context.Background(), &awslambda.GetFunctionConfigurationInput{FunctionName: function})
	if err != nil {
		return ""
	}
	return aws.ToString(out.Role)
}

func destinations(c *lambdatypes.DestinationConfig) (all []string) {
	if c != nil && c.OnSuccess != nil {
		all = append(all, aws.ToString(c.OnSuccess.Destination))
	}
	if c != nil && c.OnFailure != nil {
		all = append(all, aws.ToString(c.OnFailure.Destination))
	}
	return all
}

// toQueue returns that a topic sends its messages to a queue.
func toQueue(queue, topic string) writing {
	return writing{Need: authorize.Need{Action: "sqs:SendMessage", Resource: queue}, service: "sns.amazonaws.com", source: topic}
}

// toDeadLetters returns that a topic sends what it can't deliver to the queue of a redrive policy. One that can't be read is refused later.
func toDeadLetters(policy, topic string) []writing {
	var redrive struct {
		Queue string `json:"deadLetterTargetArn"`
	}
	if json.Unmarshal([]byte(policy), &redrive) != nil || redrive.Queue == "" {
		return nil
	}
	return []writing{toQueue(redrive.Queue, topic)}
}

// checkWritings refuses a call that has written what neither its caller may write, nor the role that it passes, nor the service by the policy of
// the bucket, queue or topic.
func (g gate) checkWritings(ctx context.Context, c call.Call, in any, who iam.Permissions, known policy.Context) error {
	for _, w := range g.writings(in) {
		d := g.decide(ctx, w.Need, who, known)
		if d.Effect == policy.Allowed || g.lets(ctx, w, known) || g.roleMay(ctx, w) {
			continue
		}
		return refusal.New("AccessDeniedException", "%s", authorize.Message(c.Service, c.Principal, w.Need, d))
	}
	return nil
}

// roleMay reports whether the role as which something is written may do so. That the caller may pass it is asked elsewhere.
func (g gate) roleMay(ctx context.Context, w writing) bool {
	if g.plane.IAM.RoleID(w.role) == "" {
		return false
	}
	who := g.plane.IAM.PermissionsOf(call.Identity{Principal: w.role, Role: w.role})
	return !who.Unlimited && g.decide(ctx, w.Need, who, who.Context).Effect == policy.Allowed
}

// lets reports whether the policy of a bucket or a queue lets a service write.
func (g gate) lets(ctx context.Context, w writing, known policy.Context) bool {
	resource := g.resourcePolicy(ctx, w.Resource)
	if resource == nil {
		return false
	}
	of := maps.Clone(known)
	of.Set("aws:SourceArn", w.source)
	of.Set("aws:SourceAccount", g.plane.options.Account)
	of.Set("aws:SourceOwner", g.plane.options.Account) // topics' default policies ask for it
	return policy.Evaluate(policy.Request{
		Principal: policy.Principal{Service: w.service},
		Action:    w.Action,
		Resource:  w.Resource,
		Context:   of,
	}, policy.Policies{Resource: resource}).Effect == policy.Allowed
}
