package cloudformation

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/state"
)

// TestDriftIsFound: what is changed behind a stack's back is found just there, and nowhere else.
func TestDriftIsFound(t *testing.T) {
	for _, c := range []struct {
		template, what string
		change         func(w *world, ids map[string]string)
		want           []string
	}{
		{running, "C", func(w *world, ids map[string]string) {
			settings := []ecstypes.ClusterSetting{{Name: "containerInsights", Value: aws.String("disabled")}}
			call1[ecs.UpdateClusterSettingsOutput](w, &ecs.UpdateClusterSettingsInput{Cluster: new(ids["C"]), Settings: settings})
		}, []string{"/ClusterSettings/0/Value NOT_EQUAL enabled -> disabled"}},
		{running, "S", func(w *world, ids map[string]string) {
			call1[ecs.UpdateServiceOutput](w, &ecs.UpdateServiceInput{Cluster: new(ids["C"]), Service: new(ids["S"]), DesiredCount: aws.Int32(2)})
		}, []string{"/DesiredCount NOT_EQUAL 0 -> 2"}},
		{running, "T", func(w *world, ids map[string]string) {
			call1[ecs.DeregisterTaskDefinitionOutput](w, &ecs.DeregisterTaskDefinitionInput{TaskDefinition: new(ids["T"])})
		}, nil},
		{running, "R", func(w *world, ids map[string]string) {
			in := &iam.AttachRolePolicyInput{RoleName: new(ids["R"]), PolicyArn: aws.String("arn:aws:iam::aws:policy/AmazonS3FullAccess")}
			call1[iam.AttachRolePolicyOutput](w, in)
			call1[iam.PutRolePolicyOutput](w, &iam.PutRolePolicyInput{
				RoleName: new(ids["R"]), PolicyName: aws.String("own"),
				PolicyDocument: aws.String(`{"Statement": [{"Effect": "Allow", "Action": ["sqs:*"], "Resource": "*", "Sid": "x"}]}`),
			})
		}, []string{
			"/ManagedPolicyArns/1 ADD null -> arn:aws:iam::aws:policy/AmazonS3FullAccess",
			`/Policies/0/PolicyDocument/Statement/0/Action NOT_EQUAL ["sqs:*","s3:*"] -> sqs:*`,
			"/Policies/0/PolicyDocument/Statement/0/Sid ADD null -> x",
		}},
		{running, "I", func(w *world, ids map[string]string) {
			in := &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: new(ids["I"]), RoleName: new(ids["R"])}
			call1[iam.RemoveRoleFromInstanceProfileOutput](w, in)
		}, []string{"/Roles REMOVE [*] -> null"}},
		{running, "Q", func(w *world, ids map[string]string) {
			call1[sqs.SetQueueAttributesOutput](w, &sqs.SetQueueAttributesInput{QueueUrl: new(ids["Q"]), Attributes: map[string]string{
				"VisibilityTimeout": "61", "DelaySeconds": "5",
				"RedrivePolicy": `{"maxReceiveCount": 4, "deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:` + lastOf(ids["D"]) + `"}`,
			}})
			call1[sqs.TagQueueOutput](w, &sqs.TagQueueInput{QueueUrl: new(ids["Q"]), Tags: map[string]string{"a": "c", "new": "x"}})
		}, []string{
			"/RedrivePolicy/maxReceiveCount NOT_EQUAL 3 -> 4", "/Tags/0/Value NOT_EQUAL b -> c",
			`/Tags/1 ADD null -> {"Key":"new","Value":"x"}`, "/VisibilityTimeout NOT_EQUAL 60 -> 61",
		}},
		{running, "D", func(w *world, ids map[string]string) {
			call1[sqs.DeleteQueueOutput](w, &sqs.DeleteQueueInput{QueueUrl: new(ids["D"])})
		}, nil},
		{running, "P", func(w *world, ids map[string]string) {
			in := &ssm.PutParameterInput{Name: new(ids["P"]), Value: aws.String("w"), Overwrite: aws.Bool(true), Type: ssmtypes.ParameterTypeString}
			call1[ssm.PutParameterOutput](w, in)
		}, []string{"/Value NOT_EQUAL v -> w"}},
		{running, "V", func(w *world, ids map[string]string) {
			call1[ec2.DeleteTagsOutput](w, &ec2.DeleteTagsInput{Resources: []string{ids["V"]}, Tags: []ec2types.Tag{{Key: aws.String("Name")}}})
		}, []string{`/Tags REMOVE [{"Key":"Name","Value":"v"}] -> null`}},
		{running, "N", func(w *world, ids map[string]string) {
			call1[ec2.ModifySubnetAttributeOutput](w, &ec2.ModifySubnetAttributeInput{
				SubnetId: new(ids["N"]), MapPublicIpOnLaunch: &ec2types.AttributeBooleanValue{Value: aws.Bool(false)},
			})
		}, []string{"/MapPublicIpOnLaunch NOT_EQUAL true -> false"}},
		{running, "G", func(w *world, ids map[string]string) {
			in := &ec2.AuthorizeSecurityGroupIngressInput{GroupId: new(ids["G"]), IpPermissions: []ec2types.IpPermission{{
				IpProtocol: aws.String("tcp"), FromPort: aws.Int32(81), ToPort: aws.Int32(81),
				IpRanges: []ec2types.IpRange{{CidrIp: aws.String("0.0.0.0/0")}},
			}}}
			call1[ec2.AuthorizeSecurityGroupIngressOutput](w, in)
		}, []string{`/SecurityGroupIngress/2 ADD null -> {"CidrIp":"0.0.0.0/0","FromPort":81,"IpProtocol":"tcp","ToPort":81}`}},
		{running, "L", func(w *world, ids map[string]string) {
			in := &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: new(ids["L"]), RetentionInDays: aws.Int32(30)}
			call1[cloudwatchlogs.PutRetentionPolicyOutput](w, in)
		}, []string{"/RetentionInDays NOT_EQUAL 7 -> 30"}},
		{running, "A", func(w *world, ids map[string]string) {
			call1[cloudwatch.DisableAlarmActionsOutput](w, &cloudwatch.DisableAlarmActionsInput{AlarmNames: []string{ids["A"]}})
			in := &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{ids["A"]}}
			call1[cloudwatch.DeleteAlarmsOutput](w, in)
		}, nil},
		{stored, "B", func(w *world, ids map[string]string) {
			call1[s3.PutBucketVersioningOutput](w, &s3.PutBucketVersioningInput{
				Bucket: new(ids["B"]), VersioningConfiguration: &s3types.VersioningConfiguration{Status: s3types.BucketVersioningStatusSuspended},
			})
			call1[s3.DeleteBucketCorsOutput](w, &s3.DeleteBucketCorsInput{Bucket: new(ids["B"])})
		}, []string{
			`/CorsConfiguration REMOVE {"CorsRules":[{"AllowedMethods":["GET"],"AllowedOrigins":["*"],"MaxAge":60}]} -> null`,
			"/VersioningConfiguration/Status NOT_EQUAL Enabled -> Suspended",
		}},
		{stored, "P", func(w *world, ids map[string]string) {
			call1[s3.DeleteBucketPolicyOutput](w, &s3.DeleteBucketPolicyInput{Bucket: new(ids["P"])})
		}, nil},
		{stored, "QP", func(w *world, ids map[string]string) {
			in := &sqs.SetQueueAttributesInput{QueueUrl: new(ids["Q"]), Attributes: map[string]string{"Policy": ""}}
			call1[sqs.SetQueueAttributesOutput](w, in)
		}, nil},
		{secretive, "S", func(w *world, ids map[string]string) {
			in := &secretsmanager.UpdateSecretInput{SecretId: new(ids["S"]), Description: aws.String("e"), SecretString: aws.String("hush"),
				ClientRequestToken: new(state.NewUUID())}
			call1[secretsmanager.UpdateSecretOutput](w, in)
		}, []string{"/Description NOT_EQUAL d -> e"}},
		{secretive, "F", func(w *world, ids map[string]string) {
			in := &cloudwatchlogs.DeleteMetricFilterInput{LogGroupName: new(ids["G"]), FilterName: new(ids["F"])}
			call1[cloudwatchlogs.DeleteMetricFilterOutput](w, in)
		}, nil},
		{scaled, "Group", func(w *world, ids map[string]string) {
			in := &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: new(ids["Group"]), MaxSize: aws.Int32(9)}
			call1[autoscaling.UpdateAutoScalingGroupOutput](w, in)
			call1[autoscaling.CreateOrUpdateTagsOutput](w, &autoscaling.CreateOrUpdateTagsInput{Tags: []astypes.Tag{{
				Key: aws.String("Name"), Value: aws.String("second"), PropagateAtLaunch: aws.Bool(true),
				ResourceId: new(ids["Group"]), ResourceType: aws.String("auto-scaling-group"),
			}}})
		}, []string{"/MaxSize NOT_EQUAL 4 -> 9", "/Tags/0/Value NOT_EQUAL first -> second"}},
		{scaled, "Hook", func(w *world, ids map[string]string) {
			in := &autoscaling.PutLifecycleHookInput{
				AutoScalingGroupName: new(ids["Group"]), LifecycleHookName: new(ids["Hook"]), HeartbeatTimeout: aws.Int32(61),
			}
			call1[autoscaling.PutLifecycleHookOutput](w, in)
		}, []string{"/HeartbeatTimeout NOT_EQUAL 60 -> 61"}},
		{scaled, "Template", func(w *world, ids map[string]string) {
			call1[ec2.CreateLaunchTemplateVersionOutput](w, &ec2.CreateLaunchTemplateVersionInput{
				LaunchTemplateId: new(ids["Template"]), SourceVersion: aws.String("1"), VersionDescription: aws.String("one"),
				LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: aws.String("ami-2")},
			})
		}, []string{"/LaunchTemplateData/ImageId NOT_EQUAL ami-1 -> ami-2"}},
		{fleet, "Target", func(w *world, ids map[string]string) {
			parts := strings.Split(ids["Target"], "|")
			in := &applicationautoscaling.RegisterScalableTargetInput{
				ResourceId: &parts[0], ScalableDimension: "ecs:service:DesiredCount", ServiceNamespace: "ecs", MaxCapacity: aws.Int32(8),
			}
			call1[applicationautoscaling.RegisterScalableTargetOutput](w, in)
		}, []string{"/MaxCapacity NOT_EQUAL 3 -> 8"}},
		{fleet, "Policy", func(w *world, ids map[string]string) {
			parts := strings.Split(ids["Target"], "|")
			in := &applicationautoscaling.DeleteScalingPolicyInput{
				PolicyName: aws.String("load"), ResourceId: &parts[0], ScalableDimension: "ecs:service:DesiredCount", ServiceNamespace: "ecs",
			}
			call1[applicationautoscaling.DeleteScalingPolicyOutput](w, in)
		}, nil},
		{fleet, "Associations", func(w *world, ids map[string]string) {
			in := &ecs.PutClusterCapacityProvidersInput{
				Cluster: new(ids["Cluster"]), CapacityProviders: []string{ids["Provider"]},
				DefaultCapacityProviderStrategy: []ecstypes.CapacityProviderStrategyItem{{CapacityProvider: new(ids["Provider"]), Weight: 2}},
			}
			call1[ecs.PutClusterCapacityProvidersOutput](w, in)
		}, []string{"/DefaultCapacityProviderStrategy/0/Weight NOT_EQUAL 1 -> 2"}},
		{networked, "RI", func(w *world, ids map[string]string) {
			in := &ec2.ReplaceRouteInput{
				RouteTableId: new(ids["R"]), DestinationCidrBlock: aws.String("0.0.0.0/0"), NatGatewayId: new(ids["G"]),
			}
			call1[ec2.ReplaceRouteOutput](w, in)
		}, []string{"/GatewayId REMOVE * -> null"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := withStores(t)
			w.create("s", c.template)
			w.rollOut()
			w.expect(types.StackStatusCreateComplete)
			ids := physicalIDs(w.store.View())
			c.change(w, ids)
			var got []string
			for _, line := range w.drifts() {
				for name, id := range ids {
					if len(name) < 3 && len(id) > 4 {
						line = strings.ReplaceAll(line, `"`+id+`"`, "*")
						line = strings.ReplaceAll(line, " "+id+" ", " * ")
					}
				}
				if !strings.HasSuffix(line, " IN_SYNC") {
					got = append(got, line)
				}
			}
			want := append([]string{c.what + " MODIFIED"}, c.want...)
			if c.want == nil {
				want = []string{c.what + " DELETED"}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// lastOf returns the name at the end of a URL.
func lastOf(url string) string { return url[strings.LastIndex(url, "/")+1:] }

// TestDriftIsShown: what was found shows wherever a stack and its resources do, until it's looked for again.
func TestDriftIsShown(t *testing.T) {
	w := withStores(t)
	w.create("s", running)
	w.rollOut()
	ids := physicalIDs(w.store.View())
	name := aws.String("s")
	call1[ecs.UpdateServiceOutput](w, &ecs.UpdateServiceInput{Cluster: new(ids["C"]), Service: new(ids["S"]), DesiredCount: aws.Int32(2)})
	one, err := w.DetectStackResourceDrift(t.Context(), &cloudformation.DetectStackResourceDriftInput{StackName: name, LogicalResourceId: aws.String("S")})
	if err != nil || one.StackResourceDrift.StackResourceDriftStatus != "MODIFIED" {
		t.Fatalf("the service: %+v, %v", one, err)
	}
	if text := *one.StackResourceDrift.ActualProperties; !strings.Contains(text, `"DesiredCount":2`) || strings.Contains(text, "LaunchType") {
		t.Errorf("it is %s", text)
	}
	began, err := w.DetectStackDrift(t.Context(), &cloudformation.DetectStackDriftInput{StackName: name})
	if err != nil {
		t.Fatal(err)
	}
	status, err := w.DescribeStackDriftDetectionStatus(t.Context(),
		&cloudformation.DescribeStackDriftDetectionStatusInput{StackDriftDetectionId: began.StackDriftDetectionId})
	if err != nil || status.DetectionStatus != "DETECTION_COMPLETE" || status.StackDriftStatus != "DRIFTED" || *status.DriftedStackResourceCount != 1 {
		t.Errorf("the detection: %+v, %v", status, err)
	}
	all, err := w.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{})
	if d := all.Stacks[0].DriftInformation; err != nil || d.StackDriftStatus != "DRIFTED" || d.LastCheckTimestamp == nil {
		t.Errorf("the stack: %+v, %v", d, err)
	}
	listed, err := w.ListStacks(t.Context(), &cloudformation.ListStacksInput{})
	if d := listed.StackSummaries[0].DriftInformation; err != nil || d.StackDriftStatus != "DRIFTED" {
		t.Errorf("in the list: %+v, %v", d, err)
	}
	resources, err := w.ListStackResources(t.Context(), &cloudformation.ListStackResourcesInput{StackName: name})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resources.StackResourceSummaries {
		want := types.StackResourceDriftStatusInSync
		if *r.LogicalResourceId == "S" {
			want = types.StackResourceDriftStatusModified
		}
		if r.DriftInformation.StackResourceDriftStatus != want {
			t.Errorf("%s is %s", *r.LogicalResourceId, r.DriftInformation.StackResourceDriftStatus)
		}
	}
	call1[ecs.UpdateServiceOutput](w, &ecs.UpdateServiceInput{Cluster: new(ids["C"]), Service: new(ids["S"]), DesiredCount: aws.Int32(0)})
	w.drifts()
	all, err = w.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{})
	if d := all.Stacks[0].DriftInformation; err != nil || d.StackDriftStatus != "IN_SYNC" {
		t.Errorf("once it's as it was: %+v, %v", d, err)
	}
}

// TestDriftKeepsSecrets: what a template conceals isn't shown by a search for drift either, whatever is in its place by now.
func TestDriftKeepsSecrets(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", `
Parameters:
  Quiet: {Type: String, NoEcho: true, Default: hush-hush}
Resources:
  P: {Type: AWS::SSM::Parameter, Properties: {Type: String, Description: !Sub 'is ${Quiet}', Value: !Ref Quiet}}
`)
	id := physicalIDs(w.store.View())["P"]
	in := &ssm.PutParameterInput{Name: &id, Value: aws.String("other"), Overwrite: aws.Bool(true), Description: aws.String("was hush-hush")}
	call1[ssm.PutParameterOutput](w, in)
	got := w.drifts()
	want := []string{"P MODIFIED", "/Description NOT_EQUAL is **** -> ****", "/Value NOT_EQUAL **** -> ****"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	out, err := w.DescribeStackResourceDrifts(t.Context(), &cloudformation.DescribeStackResourceDriftsInput{StackName: aws.String("s")})
	if err != nil {
		t.Fatal(err)
	}
	shown := *out.StackResourceDrifts[0].ExpectedProperties + *out.StackResourceDrifts[0].ActualProperties
	if strings.Contains(shown, "hush") || strings.Contains(shown, "other") {
		t.Errorf("it shows %s", shown)
	}
}

// TestDriftRefused: what can't be looked for is refused, and searches are kept in a number that is bounded.
func TestDriftRefused(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", "Resources: {H: {Type: AWS::CloudFormation::WaitConditionHandle}, C: {Type: AWS::ECS::Cluster}}")
	name := aws.String("s")
	_, err := w.DetectStackDrift(t.Context(), &cloudformation.DetectStackDriftInput{StackName: aws.String("t")})
	check(t, "another stack", err, "Stack [t] does not exist")
	_, err = w.DetectStackDrift(t.Context(), &cloudformation.DetectStackDriftInput{StackName: name, LogicalResourceIds: []string{"X"}})
	check(t, "another resource", err, "Resource X does not exist for stack s")
	_, err = w.DetectStackResourceDrift(t.Context(), &cloudformation.DetectStackResourceDriftInput{StackName: name, LogicalResourceId: aws.String("H")})
	check(t, "a handle", err, "Resource type AWS::CloudFormation::WaitConditionHandle does not support drift detection")
	for range 25 {
		if got := w.drifts(); !slices.Equal(got, []string{"C IN_SYNC"}) {
			t.Fatalf("got %v", got)
		}
	}
	if n := w.store.View().DriftDetections.Len(); n != 20 {
		t.Errorf("%d searches are kept", n)
	}
}
