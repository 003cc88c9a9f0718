package cloudformation

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	controltypes "github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"

	cloudcontrolapi "github.com/pintle/pintle/internal/cloudformation/cloudcontrol"
	"github.com/pintle/pintle/internal/cloudformation/requests"
	"github.com/pintle/pintle/internal/vault/vaulttest"
)

// control is Cloud Control in a world.
type control struct {
	*world
	*cloudcontrolapi.Service
	loop *requests.Loop
}

func newControl(w *world) *control {
	loop := requests.New(w.store, requests.Options{
		Account: w.opts.Account, Services: w.services, Vault: vaulttest.New(w.t, 7), Log: slog.New(slog.DiscardHandler),
	})
	return &control{w, cloudcontrolapi.New(w.store, loop, w.opts.Account), loop}
}

// done carries a request out and returns how it ended.
func (c *control) done(e *controltypes.ProgressEvent, err error) *controltypes.ProgressEvent {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	for range 100 {
		moved, err := c.loop.Step(c.t.Context(), *e.RequestToken)
		if err != nil {
			c.t.Fatal(err)
		}
		if !moved {
			break
		}
	}
	out, err := c.GetResourceRequestStatus(c.t.Context(), &cloudcontrol.GetResourceRequestStatusInput{RequestToken: e.RequestToken})
	if err != nil {
		c.t.Fatal(err)
	}
	return out.ProgressEvent
}

func (c *control) make(kind, properties string) *controltypes.ProgressEvent {
	c.t.Helper()
	out, err := c.CreateResource(c.t.Context(), &cloudcontrol.CreateResourceInput{TypeName: &kind, DesiredState: &properties})
	if err != nil {
		c.t.Fatal(kind, err)
	}
	return c.done(out.ProgressEvent, nil)
}

func (c *control) patch(kind, id, patch string) *controltypes.ProgressEvent {
	c.t.Helper()
	out, err := c.UpdateResource(c.t.Context(), &cloudcontrol.UpdateResourceInput{TypeName: &kind, Identifier: &id, PatchDocument: &patch})
	if err != nil {
		c.t.Fatal(kind, err)
	}
	return c.done(out.ProgressEvent, nil)
}

func (c *control) unmake(kind, id string) *controltypes.ProgressEvent {
	c.t.Helper()
	out, err := c.DeleteResource(c.t.Context(), &cloudcontrol.DeleteResourceInput{TypeName: &kind, Identifier: &id})
	if err != nil {
		c.t.Fatal(kind, err)
	}
	return c.done(out.ProgressEvent, nil)
}

func (c *control) get(kind, id string) (map[string]any, error) {
	out, err := c.GetResource(c.t.Context(), &cloudcontrol.GetResourceInput{TypeName: &kind, Identifier: &id})
	if err != nil {
		return nil, err
	}
	var v map[string]any
	return v, json.Unmarshal([]byte(*out.ResourceDescription.Properties), &v)
}

// TestCloudControl: resources are made, read, listed, changed in one property and deleted, each by its type.
func TestCloudControl(t *testing.T) {
	const trust = `{"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ecs-tasks.amazonaws.com"}}]}`
	for _, r := range []struct{ kind, properties, patch, name, want string }{
		{"AWS::ECS::Cluster", `{"Tags": [{"Key": "a", "Value": "b"}]}`, `[{"op": "replace", "path": "/Tags/0/Value", "value": "c"}]`, "Tags", `[{"Key":"a","Value":"c"}]`},
		{"AWS::ECS::TaskDefinition", `{"ContainerDefinitions": [{"Name": "a", "Image": "i", "Memory": 64}]}`, `[{"op": "add", "path": "/Tags", "value": [{"Key": "a", "Value": "c"}]}]`, "Tags", `[{"Key":"a","Value":"c"}]`},
		{"AWS::SQS::Queue", `{"DelaySeconds": 5}`, `[{"op": "replace", "path": "/DelaySeconds", "value": 6}]`, "DelaySeconds", `6`},
		{"AWS::SNS::Topic", `{"DisplayName": "d"}`, `[{"op": "replace", "path": "/DisplayName", "value": "e"}]`, "DisplayName", `"e"`},
		{"AWS::S3::Bucket", `{"VersioningConfiguration": {"Status": "Enabled"}}`, `[{"op": "replace", "path": "/VersioningConfiguration/Status", "value": "Suspended"}]`, "VersioningConfiguration", `{"Status":"Suspended"}`},
		{"AWS::Logs::LogGroup", `{"RetentionInDays": 7}`, `[{"op": "replace", "path": "/RetentionInDays", "value": 14}]`, "RetentionInDays", `14`},
		{"AWS::IAM::Role", `{"AssumeRolePolicyDocument": ` + trust + `}`, `[{"op": "add", "path": "/Description", "value": "d"}]`, "Description", `"d"`},
		{"AWS::IAM::User", `{}`, `[{"op": "add", "path": "/Path", "value": "/p/"}]`, "Path", `"/p/"`},
		{"AWS::IAM::ManagedPolicy", `{"PolicyDocument": {"Statement": [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}]}}`, `[{"op": "replace", "path": "/PolicyDocument/Statement/0/Action", "value": "s3:*"}]`, "PolicyDocument", `{"Statement":[{"Action":"s3:*","Effect":"Allow","Resource":"*"}]}`},
		{"AWS::SSM::Parameter", `{"Type": "String", "Value": "v"}`, `[{"op": "replace", "path": "/Value", "value": "w"}]`, "Value", `"w"`},
		{"AWS::SecretsManager::Secret", `{"SecretString": "hush"}`, `[{"op": "add", "path": "/Description", "value": "d"}]`, "Description", `"d"`},
		{"AWS::EC2::VPC", `{"CidrBlock": "10.0.0.0/16"}`, `[{"op": "replace", "path": "/EnableDnsHostnames", "value": true}]`, "EnableDnsHostnames", `true`},
		{"AWS::EC2::SecurityGroup", `{"GroupDescription": "g", "VpcId": "$VPC"}`, `[{"op": "add", "path": "/SecurityGroupIngress", "value": [{"IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "CidrIp": "10.0.0.0/8"}]}]`, "SecurityGroupIngress", `[{"CidrIp":"10.0.0.0/8","FromPort":1,"IpProtocol":"tcp","ToPort":1}]`},
		{"AWS::EC2::LaunchTemplate", `{"LaunchTemplateData": {"ImageId": "ami-1"}}`, `[{"op": "replace", "path": "/LaunchTemplateData/ImageId", "value": "ami-2"}]`, "LaunchTemplateData", `{"ImageId":"ami-2"}`},
		{"AWS::EC2::EIP", `{}`, `[{"op": "add", "path": "/Tags", "value": [{"Key": "a", "Value": "c"}]}]`, "Tags", `[{"Key":"a","Value":"c"}]`},
		{"AWS::CloudWatch::Alarm", `{"MetricName": "m", "Namespace": "n", "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1, "Threshold": 5, "ComparisonOperator": "GreaterThanThreshold"}`, `[{"op": "replace", "path": "/Threshold", "value": 6.5}]`, "Threshold", `6.5`},
		{"AWS::Events::Rule", `{"ScheduleExpression": "rate(1 day)", "Tags": [{"Key": "a", "Value": "b"}]}`, `[{"op": "replace", "path": "/ScheduleExpression", "value": "rate(2 days)"}]`, "ScheduleExpression", `"rate(2 days)"`},
		{"AWS::Lambda::Function", `{"Code": {"ZipFile": "x"}, "Handler": "index.handler", "Runtime": "python3.12", "Role": "arn:aws:iam::000000000000:role/r"}`, `[{"op": "replace", "path": "/Timeout", "value": 9}]`, "Timeout", `9`},
		{"AWS::AutoScaling::LaunchConfiguration", `{"ImageId": "ami-1", "InstanceType": "p3.2xlarge"}`, "", "", ""},
	} {
		t.Run(r.kind, func(t *testing.T) {
			c := newControl(withStores(t))
			if strings.Contains(r.properties, "$VPC") {
				vpc := c.make("AWS::EC2::VPC", `{"CidrBlock": "10.0.0.0/16"}`)
				r.properties = strings.Replace(r.properties, "$VPC", *vpc.Identifier, 1)
			}
			made := c.make(r.kind, r.properties)
			if made.OperationStatus != "SUCCESS" || made.Identifier == nil {
				t.Fatalf("%s: %s", made.OperationStatus, aws.ToString(made.StatusMessage))
			}
			id := *made.Identifier
			listed, err := c.ListResources(t.Context(), &cloudcontrol.ListResourcesInput{TypeName: &r.kind, MaxResults: aws.Int32(100)})
			is := func(d controltypes.ResourceDescription) bool { return *d.Identifier == id }
			if err != nil && r.kind != "AWS::EC2::EIP" || err == nil && !slices.ContainsFunc(listed.ResourceDescriptions, is) {
				t.Errorf("%s isn't in the list %v: %v", id, listed, err)
			}
			if r.patch != "" {
				changed := c.patch(r.kind, id, r.patch)
				if changed.OperationStatus != "SUCCESS" || *changed.Identifier != id {
					t.Fatalf("the change is %s: %s", changed.OperationStatus, aws.ToString(changed.StatusMessage))
				}
				got, err := c.get(r.kind, id)
				text, _ := json.Marshal(got[r.name])
				if err != nil || string(text) != r.want {
					t.Errorf("%s is %s: %v", r.name, text, err)
				}
			}
			if gone := c.unmake(r.kind, id); gone.OperationStatus != "SUCCESS" {
				t.Errorf("the deletion is %s: %s", gone.OperationStatus, aws.ToString(gone.StatusMessage))
			}
			if got, err := c.get(r.kind, id); err == nil || !strings.Contains(err.Error(), "ResourceNotFoundException") {
				t.Errorf("afterwards there is %v: %v", got, err)
			}
		})
	}
}

// TestCloudControlRefused: what can't be done is refused with the errors of Cloud Control's model.
func TestCloudControlRefused(t *testing.T) {
	c := newControl(withStores(t))
	id := *c.make("AWS::SSM::Parameter", `{"Name": "p", "Type": "String", "Value": "v"}`).Identifier
	launch := *c.make("AWS::AutoScaling::LaunchConfiguration", `{"ImageId": "ami-1", "InstanceType": "p3.2xlarge"}`).Identifier
	ctx := t.Context()
	create := func(kind, properties, token string) error {
		in := &cloudcontrol.CreateResourceInput{TypeName: &kind, DesiredState: &properties, ClientToken: optional(token)}
		_, err := c.CreateResource(ctx, in)
		return err
	}
	update := func(kind, id, patch string) error {
		_, err := c.UpdateResource(ctx, &cloudcontrol.UpdateResourceInput{TypeName: &kind, Identifier: &id, PatchDocument: &patch})
		return err
	}
	parameter := "AWS::SSM::Parameter"
	for want, err := range map[string]error{
		"TypeNotFoundException: The type 'AWS::SSM::Nothing' cannot be found.":                                                                                       create("AWS::SSM::Nothing", "{}", ""),
		"UnsupportedActionException: Resource type AWS::CloudFormation::Stack does not support CREATE action":                                                        create("AWS::CloudFormation::Stack", "{}", ""),
		"ValidationException: The properties must be a JSON object":                                                                                                  create(parameter, "[]", ""),
		"ValidationException: Model validation failed (#: extraneous key [X] is not permitted, #: required key [Type] not found, #: required key [Value] not found)": create(parameter, `{"X": 1}`, ""),
		"ValidationException: Model validation failed (#/Value: expected type: String, found: Boolean)":                                                              create(parameter, `{"Type": "String", "Value": true}`, ""),
		"ValidationException: Model validation failed (#/Value: expected type: String, found: Number)":                                                               create(parameter, `{"Type": "String", "Value": 1}`, ""),
		"ValidationException: Model validation failed (#/FifoQueue: expected type: Boolean, found: String)":                                                          create("AWS::SQS::Queue", `{"FifoQueue": "true"}`, ""),
		"NotUpdatableException: Invalid patch update: createOnlyProperties [/properties/Name] cannot be updated":                                                     update(parameter, id, `[{"op": "replace", "path": "/Name", "value": "q"}]`),
		"UnsupportedActionException: Resource type AWS::AutoScaling::LaunchConfiguration does not support UPDATE action":                                             update("AWS::AutoScaling::LaunchConfiguration", launch, `[{"op": "replace", "path": "/ImageId", "value": "q"}]`),
		"InvalidRequestException: operation 0 of the patch: there is nothing at /X":                                                                                  update(parameter, id, `[{"op": "remove", "path": "/X"}]`),
		"ValidationException: Model validation failed (#: required key [Value] not found)":                                                                           update(parameter, id, `[{"op": "remove", "path": "/Value"}]`),
		"ResourceNotFoundException: Resource of type 'AWS::SSM::Parameter' with identifier 'q' was not found.":                                                       update(parameter, "q", `[]`),
		"ValidationException: Identifier AWS|x is not valid for identifier schema":                                                                                   update("AWS::ApplicationAutoScaling::ScalableTarget", "AWS|x", `[]`),
	} {
		if got := strings.TrimPrefix(errorText(err), "api error "); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if again := c.make(parameter, `{"Name": "p", "Type": "String", "Value": "w"}`); again.ErrorCode != "AlreadyExists" || again.OperationStatus != "FAILED" {
		t.Errorf("the same name again: %+v", again)
	}
	if bad := c.make("AWS::EC2::VPC", `{"CidrBlock": "10.0.0.0/99"}`); bad.ErrorCode != "InvalidRequest" {
		t.Errorf("a bad block: %s %s", bad.ErrorCode, aws.ToString(bad.StatusMessage))
	}
	if got, err := c.get(parameter, id); err != nil || got["Value"] != "v" {
		t.Errorf("the parameter is %v: %v", got, err)
	}
	if err := create(parameter, `{"Name": "r", "Type": "String", "Value": "v"}`, "token"); err != nil {
		t.Error(err)
	}
	if err := create(parameter, `{"Name": "r", "Type": "String", "Value": "v"}`, "token"); err != nil {
		t.Errorf("the same call again: %v", err)
	}
	if err := create(parameter, `{"Name": "s", "Type": "String", "Value": "v"}`, "token"); !strings.Contains(errorText(err), "ClientTokenConflictException") {
		t.Errorf("another call with its token: %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// TestCloudControlRequests: requests can be canceled, are listed by what came of them, and bar others of the same resource meanwhile.
func TestCloudControlRequests(t *testing.T) {
	c := newControl(withStores(t))
	ctx, kind := t.Context(), aws.String("AWS::SSM::Parameter")
	id := c.make(*kind, `{"Type": "String", "Value": "v"}`).Identifier
	first, err := c.DeleteResource(ctx, &cloudcontrol.DeleteResourceInput{TypeName: kind, Identifier: id})
	if err != nil || first.ProgressEvent.OperationStatus != "PENDING" {
		t.Fatalf("%+v, %v", first, err)
	}
	_, err = c.DeleteResource(ctx, &cloudcontrol.DeleteResourceInput{TypeName: kind, Identifier: id})
	if !strings.Contains(errorText(err), "ConcurrentOperationException") {
		t.Errorf("a second deletion: %v", err)
	}
	token := first.ProgressEvent.RequestToken
	if _, err := c.CancelResourceRequest(ctx, &cloudcontrol.CancelResourceRequestInput{RequestToken: token}); err != nil {
		t.Fatal(err)
	}
	if end := c.done(first.ProgressEvent, nil); end.OperationStatus != "CANCEL_COMPLETE" {
		t.Errorf("canceled, it is %s", end.OperationStatus)
	}
	if _, err := c.get(*kind, *id); err != nil {
		t.Errorf("its resource is gone: %v", err)
	}
	_, err = c.CancelResourceRequest(ctx, &cloudcontrol.CancelResourceRequestInput{RequestToken: token})
	if !strings.Contains(errorText(err), "is CANCEL_COMPLETE and can't be canceled") {
		t.Errorf("canceled again: %v", err)
	}
	_, err = c.GetResourceRequestStatus(ctx, &cloudcontrol.GetResourceRequestStatusInput{RequestToken: aws.String("x")})
	if !strings.Contains(errorText(err), "RequestTokenNotFoundException") {
		t.Errorf("another request: %v", err)
	}
	list, err := c.ListResourceRequests(ctx, &cloudcontrol.ListResourceRequestsInput{
		ResourceRequestStatusFilter: &controltypes.ResourceRequestStatusFilter{Operations: []controltypes.Operation{"CREATE"}},
	})
	if err != nil || len(list.ResourceRequestStatusSummaries) != 1 || *list.ResourceRequestStatusSummaries[0].Identifier != *id {
		t.Errorf("the creations are %+v, %v", list, err)
	}
	for r := range c.store.View().ResourceRequests.All() {
		if r.Before != nil || r.After != nil {
			t.Error("what an ended request was about is kept")
		}
	}
}

// TestCloudControlKilledAtEachWrite: a request that is killed ends as it would have without, and makes nothing twice.
func TestCloudControlKilledAtEachWrite(t *testing.T) {
	for _, r := range []struct{ kind, properties, patch string }{
		{"AWS::EC2::VPC", `{"CidrBlock": "10.0.0.0/16", "EnableDnsHostnames": true}`, `[{"op": "add", "path": "/Tags", "value": [{"Key": "a", "Value": "b"}]}]`},
		{"AWS::ECS::TaskDefinition", `{"Family": "f", "ContainerDefinitions": [{"Name": "a", "Image": "i", "Memory": 64}]}`, ""},
		{"AWS::SSM::Parameter", `{"Type": "String", "Value": "v"}`, `[{"op": "replace", "path": "/Value", "value": "w"}]`},
	} {
		c := newControl(newWorld(t, nil))
		id := *c.make(r.kind, r.properties).Identifier
		if r.patch != "" {
			c.patch(r.kind, id, r.patch)
		}
		c.unmake(r.kind, id)
		tried := 0
		for i, rows := range kills(c.wrote) {
			again := newControl(newWorld(t, rows))
			for open := range again.store.View().ResourceRequests.All() {
				if open.IsOver() {
					continue
				}
				tried++
				if end := again.done(&controltypes.ProgressEvent{RequestToken: &open.Token}, nil); end.OperationStatus != "SUCCESS" {
					t.Errorf("%s killed after write %d: %s %s", r.kind, i+1, end.OperationStatus, aws.ToString(end.StatusMessage))
				}
				v := again.store.View()
				n := v.VPCs.Len() + v.TaskDefinitions.Len() + v.Parameters.Len()
				if open.Operation != "DELETE" && n != 1 || open.Operation == "DELETE" && v.VPCs.Len()+v.Parameters.Len() != 0 {
					t.Errorf("%s killed after write %d: there are %d", open.Operation, i+1, n)
				}
			}
		}
		if tried < 5 / *killsEvery {
			t.Errorf("only %d kills were tried", tried)
		}
	}
}

// TestReadsAsARole: reads with another role than the caller's are refused, as changes are.
func TestReadsAsARole(t *testing.T) {
	c := newControl(newWorld(t, nil))
	role, kind := aws.String("arn:aws:iam::000000000000:role/r"), aws.String("AWS::SQS::Queue")
	_, get := c.GetResource(t.Context(), &cloudcontrol.GetResourceInput{TypeName: kind, Identifier: aws.String("q"), RoleArn: role})
	_, list := c.ListResources(t.Context(), &cloudcontrol.ListResourcesInput{TypeName: kind, RoleArn: role})
	for _, err := range []error{get, list} {
		if err == nil || !strings.Contains(err.Error(), "RoleArn") {
			t.Errorf("got %v", err)
		}
	}
}
