package resources

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/pintle/pintle/internal/cloudformation/plan"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/wire/call"
)

// CustomResource is AWS::CloudFormation::CustomResource, which templates may also call by a name of their own after customPrefix.
const (
	CustomResource = "AWS::CloudFormation::CustomResource"
	customPrefix   = "Custom::"
)

// IsCustom reports whether a type's resources are made by somebody's own function.
func IsCustom(name string) bool {
	return name == CustomResource || strings.HasPrefix(name, customPrefix)
}

// customProperties are those properties of a custom resource that mean something to CloudFormation. Its function gets all.
type customProperties struct {
	ServiceToken   *string `cfn:"required"`
	ServiceTimeout *int    // seconds
}

// custom is a type of resources that are made, changed and deleted by a function, or by whoever is subscribed to a topic. They are asked to, and
// answer at a URL.
type custom struct {
	*resource
	name string
}

var customKind = declared(&kind[*customProperties]{
	name:       CustomResource,
	attributes: []string{"*"},
	create: func(context.Context, Step, *customProperties) (string, error) {
		return "", errors.New("it's made otherwise")
	},
	update: func(context.Context, Step, string, *customProperties, *customProperties) error { return nil },
	delete: func(context.Context, Step, string, *customProperties) error { return nil },
})

// The time that an answer may take, in seconds.
const (
	defaultAnswer = 3600
	maxAnswer     = 3600
)

// Answer is what a custom resource's function has answered:
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
type Answer struct {
	Status             string
	Reason             string
	PhysicalResourceID string `json:"PhysicalResourceId"`
	StackID            string `json:"StackId"`
	RequestID          string `json:"RequestId"`
	LogicalResourceID  string `json:"LogicalResourceId"`
	NoEcho             bool
	Data               map[string]any
}

// Question is what a custom resource's function is asked.
type Question struct {
	Kind   string // Create, Update or Delete
	Within time.Duration
	// About is the rest of the request: a question that's asked again with the same is the same question.
	About map[string]any
	Send  func(ctx context.Context, request string) error
}

func (c *custom) of(properties map[string]any) *customProperties {
	p := new(customProperties)
	decode(chosen(properties), reflect.ValueOf(p).Elem())
	return p
}

// chosen returns the properties that CloudFormation itself reads.
func chosen(properties map[string]any) map[string]any {
	out := map[string]any{}
	for _, name := range []string{"ServiceToken", "ServiceTimeout"} {
		if v, there := properties[name]; there {
			out[name] = v
		}
	}
	return out
}

// Check implements Type.
func (c *custom) Check(resource string, properties map[string]any) error {
	p := new(customProperties)
	faults := decode(chosen(properties), reflect.ValueOf(p).Elem())
	token := aws.ToString(p.ServiceToken)
	switch {
	case len(faults) > 0:
	case token != "" && !strings.HasPrefix(token, "arn:aws:lambda:") && !strings.HasPrefix(token, "arn:aws:sns:"):
		faults = append(faults, "#/ServiceToken: Invalid service token. It's the ARN of a Lambda function or of an SNS topic.")
	case p.ServiceTimeout != nil && (*p.ServiceTimeout < 1 || *p.ServiceTimeout > maxAnswer):
		faults = append(faults, "#/ServiceTimeout: it's from 1 to 3600 seconds")
	}
	if len(faults) == 0 {
		return nil
	}
	return template.Errorf("Properties validation failed for resource %s with message:\n%s", resource, strings.Join(faults, "\n"))
}

// CheckDesired implements Type.
func (c *custom) CheckDesired(map[string]any, bool) []string {
	return []string{"#: custom resources belong to stacks"}
}

// Changes implements Type. Whether anything is replaced is for the function to say.
func (c *custom) Changes(before, after map[string]any) (changes []plan.Change) {
	names := map[string]bool{}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after))) {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !reflect.DeepEqual(before[name], after[name]) {
			changes = append(changes, plan.Change{Name: name})
		}
	}
	return changes
}

// ID implements Type.
func (c *custom) ID(Step, map[string]any) string { return "" }

// Exists implements Type.
func (c *custom) Exists(context.Context, Step, string, map[string]any) (bool, error) {
	return false, nil
}

// Complete implements Type.
func (c *custom) Complete(context.Context, Step, string, map[string]any) error { return nil }

// Settled implements Type.
func (c *custom) Settled(context.Context, Step, string, map[string]any) (bool, error) {
	return true, nil
}

// Create implements Type.
func (c *custom) Create(ctx context.Context, s Step, properties map[string]any) (id string, err error) {
	defer caught(&err)
	a, err := c.ask(ctx, s, "Create", properties, map[string]any{"ResourceProperties": texts(properties)})
	if err != nil {
		return "", err
	}
	keepSecret(s, a)
	return a.PhysicalResourceID, nil
}

// Update implements Type. An answer with another physical ID means that there is another resource now, and the former one is to be deleted.
func (c *custom) Update(ctx context.Context, s Step, id string, before, after map[string]any) (err error) {
	defer caught(&err)
	a, err := c.ask(ctx, s, "Update", after, map[string]any{
		"PhysicalResourceId": id, "ResourceProperties": texts(after), "OldResourceProperties": texts(before),
	})
	if err != nil {
		return err
	}
	keepSecret(s, a)
	if a.PhysicalResourceID != id {
		s.Moved(a.PhysicalResourceID)
	}
	return nil
}

// Delete implements Type.
func (c *custom) Delete(ctx context.Context, s Step, id string, properties map[string]any) (err error) {
	defer caught(&err)
	_, err = c.ask(ctx, s, "Delete", properties, map[string]any{"PhysicalResourceId": id, "ResourceProperties": texts(properties)})
	return err
}

// Read implements Type: what the function has told of the resource.
func (c *custom) Read(_ context.Context, s Step, id string, _ map[string]any) (Made, error) {
	made := Made{Ref: id, Attributes: map[string]any{}}
	a, err := s.Answered()
	if err != nil || a == nil || a.NoEcho {
		return made, err
	}
	flatten("", a.Data, made.Attributes)
	return made, nil
}

// flatten gives nested data the names that Fn::GetAtt has for them.
func flatten(prefix string, data, into map[string]any) {
	for name, v := range data {
		if nested, is := v.(map[string]any); is {
			flatten(prefix+name+".", nested, into)
			continue
		}
		into[prefix+name] = text(v)
	}
}

func keepSecret(s Step, a *Answer) {
	if !a.NoEcho || s.Keep == nil {
		return
	}
	all := map[string]any{}
	flatten("", a.Data, all)
	for name, v := range all {
		if secret, is := v.(string); is {
			s.Keep(name, secret)
		}
	}
}

// text returns a value with texts for its scalars, as CloudFormation sends them.
func text(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return texts(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = text(v[i])
		}
		return out
	case nil:
		return ""
	}
	if s, ok := template.Text(v); ok {
		return s
	}
	b, _ := json.Marshal(v) //nolint:errcheck // it came from JSON
	return string(b)
}

func texts(properties map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range properties {
		out[name] = text(v)
	}
	return out
}

// ask asks the function, and returns its answer once there is one.
func (c *custom) ask(ctx context.Context, s Step, kind string, properties, about map[string]any) (*Answer, error) {
	p := c.of(properties)
	within := defaultAnswer
	if p.ServiceTimeout != nil {
		within = *p.ServiceTimeout
	}
	about["ServiceToken"] = aws.ToString(p.ServiceToken)
	about["RequestType"] = kind
	about["StackId"] = s.StackID
	about["LogicalResourceId"] = s.Name
	about["ResourceType"] = c.name
	a, err := s.Ask(ctx, Question{
		Kind: kind, Within: time.Duration(within) * time.Second, About: about,
		Send: func(ctx context.Context, request string) error { return send(ctx, s, *p.ServiceToken, request) },
	})
	if err != nil {
		return nil, err
	}
	switch {
	case a.Status != "SUCCESS":
		return nil, template.Errorf("Received response status [%s] from custom resource. Message returned: %s (RequestId: %s)",
			a.Status, a.Reason, a.RequestID)
	case a.PhysicalResourceID == "" && kind != "Delete":
		return nil, template.Errorf("Invalid PhysicalResourceId")
	}
	return a, nil
}

// send sends a request to a function or a topic.
func send(ctx context.Context, s Step, to, request string) error {
	if strings.HasPrefix(to, "arn:aws:sns:") {
		return did[sns.PublishOutput](ctx, s, &sns.PublishInput{
			TopicArn: &to, Message: &request, Subject: aws.String("AWS CloudFormation custom resource request"),
		})
	}
	_, err := call.Do[lambda.InvokeOutput](ctx, s.Services, &lambda.InvokeInput{
		FunctionName: &to, InvocationType: lambdatypes.InvocationTypeEvent, Payload: []byte(request),
	})
	return err
}
