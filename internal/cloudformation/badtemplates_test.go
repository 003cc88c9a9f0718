package cloudformation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"
)

// badTemplate is a template that CloudFormation refuses, and its words for that.
type badTemplate struct{ text, want string }

// good is what bad sections stand beside.
const good = "\nResources: {X: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: x}}}\n"

// value returns a template with a property, and things to refer to.
func value(text string) string {
	return "Parameters: {P: {Type: String, Default: p}, L: {Type: CommaDelimitedList, Default: 'a,b'}}\n" +
		"Mappings: {M: {a: {b: c}}}\nConditions: {Always: !Equals [a, a], Never: !Not [!Condition Always]}\n" +
		"Resources:\n  C: {Type: AWS::ECS::Cluster}\n  Off: {Type: AWS::ECS::Cluster, Condition: Never}\n" +
		"  X: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: " + text + "}}\n"
}

// parameter returns a template with a parameter's declaration.
func parameter(text string) string { return "Parameters: {P: " + text + "}" + good }

// resource returns a template with a resource's attributes.
func resource(attributes string) string {
	return "Resources: {X: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: x}, " + attributes + "}}\n"
}

// many returns a section with members, of which each is the format with its number.
func many(section, format string, n int) string {
	var s strings.Builder
	s.WriteString(section + ":\n")
	for i := range n {
		fmt.Fprintf(&s, "  "+format+"\n", i)
	}
	return s.String()
}

var badForms = []badTemplate{
	{"", "Template format error: unsupported structure."},
	{"text", "Template format error: unsupported structure."},
	{"[a]", "Template format error: unsupported structure."},
	{good + "---" + good, "Template format error: unsupported structure."},
	{"{", "Template format error: JSON not well-formed. (line 1, column 2)"},
	{`{"Resources": {"X": {"Type": "AWS::ECS::Cluster"}}} x`, "Template format error: JSON not well-formed. (line 1, column 54)"},
	{"Resources: {X: [}", "Template format error: YAML not well-formed. (line 1, column 1)"},
	{value("!Foo x"), "Template format error: YAML not well-formed. (line 7, column 68)"},
	{value("&a [*a]"), "Template error: YAML aliases are not allowed in CloudFormation templates"},
	{"A: &a [x, x]\nB: &b [*a, *a]\nC: &c [*b, *b]\nD: [*c, *c]" + good, "Template error: YAML aliases are not allowed in CloudFormation templates"},
	{value(strings.Repeat("[", 120) + strings.Repeat("]", 120)), "Template format error: values are nested deeper than 100 levels (line 7, column 165)"},
	{"AWSTemplateFormatVersion: 2011-01-01" + good, "Template format error: 2011-01-01 is not a supported value for AWSTemplateFormatVersion."},
	{"Description: {a: b}" + good, "Template format error: Every Description member must be a string."},
	{"Description: " + strings.Repeat("d", 1025) + good, "Template format error: Description length must be no greater than 1024 bytes"},
	{"Malformed: {}" + good, "Invalid template property or properties [Malformed]"},
	{"Metadata: text" + good, "Template format error: [/Metadata] 'Metadata' must be an object"},
	{"Description: nothing to make", "Template format error: At least one Resources member must be defined."},
	{"Resources: {}", "Template format error: At least one Resources member must be defined."},
	{"Parameters:" + good, "[/Parameters] 'null' values are not allowed in templates"},
	{value("null"), "[/Resources/X/Properties/Value] 'null' values are not allowed in templates"},
	{good + "Outputs: {O: {Value: }}", "[/Outputs/O/Value] 'null' values are not allowed in templates"},
	{"Transform: Missing-Macro" + good, "No transform named Missing-Macro found."},
	{value("{'Fn::Transform': {Name: Missing, Parameters: {}}}"), "No transform named Missing found."},
}

var badResources = []badTemplate{
	{"Resources: {X: text}", "Template format error: Any Resources member must be an object."},
	{"Resources: {AWS::NoValue: {Type: AWS::ECS::Cluster}}", "Template format error: Resource name AWS::NoValue is non alphanumeric."},
	{"Resources: {X: {Properties: {}}}", "Template format error: [/Resources/X] Every Resources object must contain a Type member."},
	{"Resources: {X: {Type: [a]}}", "Template format error: [/Resources/X/Type] must be a string"},
	{"Resources: {X: {Type: AWS::Nothing::Here}, Y: {Type: AWS::Nothing::There}}", "Template format error: Unrecognized resource types: [AWS::Nothing::Here, AWS::Nothing::There]"},
	{"Conditions: {Is: !Equals [a, a]}\nResources: {X: {Type: AWS::Nothing::Here, Condition: Is}}", "Template format error: Unrecognized resource types: [AWS::Nothing::Here]"},
	{resource("ManagedPolicyArns: [a]"), "Invalid template resource property 'ManagedPolicyArns'"},
	{resource("Metadata: text"), "Template format error: [/Resources/X/Metadata] must be an object"},
	{resource("DeletionPolicy: Keep"), "Template format error: Unrecognized DeletionPolicy Keep for resource X"},
	{resource("DeletionPolicy: !Ref AWS::Region"), "Template format error: Every DeletionPolicy member must be a string."},
	{resource("UpdateReplacePolicy: RetainExceptOnCreate"), "Template format error: Unrecognized UpdateReplacePolicy RetainExceptOnCreate for resource X"},
	{resource("UpdatePolicy: {AutoScalingReplacingUpdate: {WillReplace: true}}"), "UpdatePolicy is not supported for resource X of type AWS::SSM::Parameter"},
	{resource("CreationPolicy: {ResourceSignal: {Count: many}}"), "Validation of the CreationPolicy of resource X failed with message:\n#/ResourceSignal/Count: expected type: Integer, found: String"},
	{resource("CreationPolicy: {Nope: {}}"), "Validation of the CreationPolicy of resource X failed with message:\n#: extraneous key [Nope] is not permitted"},
	{resource("CreationPolicy: {ResourceSignal: {Count: 1}}"), "CreationPolicy is not supported for resource X of type AWS::SSM::Parameter"},
	{"Resources: {X: {Type: AWS::SSM::Parameter, Properties: {Type: SecureString, Value: x}}}", "Properties validation failed for resource X with message:\n#/Type: SSM Parameters of type SecureString cannot be created using CloudFormation"},
	{"Resources: {V: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/16, EnableDnsSupport: false, EnableDnsHostnames: true}}}", "Properties validation failed for resource V with message:\n#/EnableDnsHostnames: DNS hostnames can only be enabled with DNS support (EnableDnsSupport)"},
	{"Resources: {Q: {Type: AWS::SQS::Queue, Properties: {Tags: [{Key: a, Value: ''}, {Key: b}]}}}", "Properties validation failed for resource Q with message:\n#/Tags/1: required key [Value] not found"},
	{"Resources: {V: {Type: AWS::EC2::VPC, Properties: {Tags: [{Value: a}]}}}", "Properties validation failed for resource V with message:\n#/Tags/0: required key [Key] not found"},
	{resource("DependsOn: {a: b}"), "Template format error: DependsOn must be a string or list of strings."},
	{resource("DependsOn: [[a]]"), "Template format error: Every DependsOn value must be a string."},
	{resource("DependsOn: Nope"), "Template format error: Unresolved resource dependencies [Nope] in the Resources block of the template"},
	{resource("DependsOn: AWS::Region"), "Template format error: Unresolved resource dependencies [AWS::Region] in the Resources block of the template"},
	{resource("DependsOn: X"), "Circular dependency between resources: [X]"},
	{"Resources: {A: {Type: AWS::ECS::Cluster, DependsOn: B}, B: {Type: AWS::ECS::Cluster, DependsOn: C}, C: {Type: AWS::ECS::Cluster, DependsOn: A}}", "Circular dependency between resources: [A, B, C]"},
	{resource("Condition: Nope"), "Template format error: Unresolved condition dependency Nope in the Resources block of the template"},
	{"Resources: {X: {Type: AWS::SSM::Parameter, Properties: text}}", "Template format error: [/Resources/X/Properties] must be an object"},
	{"Resources: {X: {Type: AWS::SSM::Parameter, Properties: {Type: String}}}", "Properties validation failed for resource X with message:\n#: required key [Value] not found"},
	{"Resources: {X: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: x, Nope: 1}}}", "Properties validation failed for resource X with message:\n#: extraneous key [Nope] is not permitted"},
	{value("[a]"), "Properties validation failed for resource X with message:\n#/Value: expected type: String, found: JSONArray"},
	{value("{a: b}"), "Properties validation failed for resource X with message:\n#/Value: expected type: String, found: JSONObject"},
	{"Resources: {V: {Type: AWS::EC2::VPC, Properties: {EnableDnsSupport: perhaps}}}", "Properties validation failed for resource V with message:\n#/EnableDnsSupport: expected type: Boolean, found: String"},
	{"Resources: {C: {Type: AWS::ECS::Cluster, Properties: {Tags: {a: b}}}}", "Properties validation failed for resource C with message:\n#/Tags: expected type: JSONArray, found: JSONObject"},
	{many("Resources", "R%d: {Type: AWS::ECS::Cluster}", 501), "Template format error: Number of resources, 501, is greater than maximum allowed, 500"},
	{"Resources: {" + strings.Repeat("R", 256) + ": {Type: AWS::ECS::Cluster}}", "Template format error: Resource name " + strings.Repeat("R", 256) + " is longer than 255 characters."},
}

var badFunctions = []badTemplate{
	{value("{'Fn::Foo': x}"), ""},
	{value("!Ref Nope"), "Template format error: Unresolved resource dependencies [Nope] in the Resources block of the template"},
	{value("{Ref: [P]}"), "Template error: All References must be of type string"},
	{value("!Ref Off"), "Template format error: Unresolved resource dependencies [Off] in the Resources block of the template"},
	{value("!GetAtt Nope.Arn"), "Template error: instance of Fn::GetAtt references undefined resource Nope"},
	{value("!GetAtt C"), "Template error: every Fn::GetAtt object requires two non-empty parameters, the resource name and the resource attribute"},
	{value("!GetAtt C.Nope"), "Template error: resource C does not support attribute type Nope in Fn::GetAtt"},
	{value("!Sub '${Nope}'"), "Template format error: Unresolved resource dependencies [Nope] in the Resources block of the template"},
	{value("!Sub '${Nope.Arn}'"), "Template error: instance of Fn::Sub references invalid resource attribute Nope.Arn"},
	{value("!Sub [a]"), "Template error: One or more Fn::Sub intrinsic functions don't specify expected arguments. Specify a string as first argument, and an optional second argument to specify a mapping of values to replace in the string"},
	{value("!Join ['-', a]"), "Template error: every Fn::Join object requires two parameters, (1) a string delimiter and (2) a list of strings to be joined or a function that returns a list of strings (such as Fn::GetAZs) to be joined."},
	{value("!Join [!Ref L, [a]]"), "Template error: every Fn::Join object requires two parameters, (1) a string delimiter and (2) a list of strings to be joined or a function that returns a list of strings (such as Fn::GetAZs) to be joined."},
	{value("!Select [100, [test]]"), "Template error: Fn::Select requires a list argument with two elements: an integer index and a list"},
	{value("!Select [bad, [test]]"), "Template error: Fn::Select requires a list argument with two elements: an integer index and a list"},
	{value("!Select [0, 2]"), "Template error: Fn::Select requires a list argument with two elements: an integer index and a list"},
	{value("!Select [5, !Ref L]"), "Template error: Fn::Select cannot select nonexistent value at index 5"},
	{value("!Select [0, !Split [',']]"), "Template error: every Fn::Split object requires two parameters, (1) a string delimiter and (2) a string to be split or a function that returns a string to be split."},
	{value("!If [Nope, a, b]"), "Template error: unresolved condition dependency Nope in Fn::If"},
	{value("!If [Always, a]"), "Template error: Fn::If requires a list argument with three elements"},
	{value("!If [[Always], a, b]"), "Template error: Fn::If requires a list argument with the first element being a condition"},
	{value("!FindInMap [Nope, a, b]"), "Template error: Mapping named 'Nope' is not present in the 'Mappings' section of template."},
	{value("!FindInMap [M, z, b]"), "Template error: Unable to get mapping for M::z::b"},
	{value("!FindInMap [M, a, z]"), "Template error: Unable to get mapping for M::a::z"},
	{value("!FindInMap [M, a]"), "Template error: every Fn::FindInMap object requires three parameters, the map name, map key and the attribute for return value"},
	{value("!Base64 [a]"), "Template error: every Fn::Base64 object must have a String-typed value."},
	{value("!Select [0, !GetAZs [a]]"), "Template error: every Fn::GetAZs object must have a String-typed value."},
	{value("!ImportValue {Ref: C}"), "Template error: the attribute in Fn::ImportValue must not depend on any resources, imported values, or Fn::GetAZs"},
	{value("!Equals [a, a]"), "Template error: Fn::Equals is only allowed in the Conditions block of the template"},
	{value("!Select [0, !Cidr [10.0.0.0/24, 300, 5]]"), "Template error: every Fn::Cidr object requires two or three parameters, an IP block, a count from 1 to 256 and the number of bits of each block"},
}

var badConditions = []badTemplate{
	{"Conditions: [a]" + good, "Template format error: [/Conditions] 'Conditions' must be an object"},
	{"Conditions: {C: text}" + good, "Template format error: Conditions can only be boolean operations on parameters and other conditions"},
	{"Conditions: {C: !Equals [a]}" + good, "Template error: every Fn::Equals object requires a list of 2 string parameters."},
	{"Conditions: {C: !Not [!Equals [a, a], !Equals [a, a]]}" + good, "Template error: every Fn::Not object requires one boolean parameter."},
	{"Conditions: {C: !And [!Equals [a, a]]}" + good, "Template error: every Fn::And object requires a list of at least 2 and at most 10 boolean parameters."},
	{"Conditions: {C: !Equals [!Ref X, x]}" + good, "Template format error: Unresolved dependencies [X]. Cannot reference resources in the Conditions block of the template"},
	{"Conditions: {C: !Not [!Condition D]}" + good, "Template format error: Unresolved condition dependency D in the Conditions block of the template"},
	{"Conditions: {C: !Not [!Condition D], D: !Not [!Condition C]}" + good, "Template format error: Circular dependency between conditions: [C, D]"},
	{"Rules: {R: {Assertions: []}}" + good, "Template format error: Every Rules member must contain a list of Assertions, each with an Assert"},
	{"Rules: {R: {Nope: x}}" + good, "Template format error: Invalid rule property or properties [Nope]"},
	{"Rules: {R: {Assertions: [{Assert: !Equals [!Ref X, x]}]}}" + good, "Template format error: Unresolved dependencies [X]. Cannot reference resources in the Rules block of the template"},
	{"Rules: {R: {Assertions: [{Assert: !Equals [a, b], AssertDescription: a isn't b}]}}" + good, "Template validation error: Rule R: a isn't b"},
	{"Mappings: {M-1: {a: {b: c}}}" + good, "Template format error: Mappings name 'M-1' must contain only alphanumeric characters."},
	{"Mappings: {M: {A: c}}" + good, "Template format error: Every Mappings member A must be a map"},
	{"Mappings: {M: {a: {b: {c: d}}}}" + good, "Template format error: Every Mappings attribute must be a String or a List."},
	{"Mappings: {" + strings.Repeat("M", 256) + ": {a: {b: c}}}" + good, "Template format error: Mappings name " + strings.Repeat("M", 256) + " is longer than 255 characters."},
	{many("Mappings", "M%d: {a: {b: c}}", 201) + good, "Template format error: Number of mappings, 201, is greater than maximum allowed, 200"},
}

var badOutputs = []badTemplate{
	{good + "Outputs: {O: {Description: x}}", "Template format error: Every Outputs member must contain a Value object"},
	{good + "Outputs: {O: text}", "Template format error: Every Outputs member must contain a Value object"},
	{good + "Outputs: {O-1: {Value: x}}", "Template format error: Output name O-1 is non alphanumeric."},
	{good + "Outputs: {O: {Value: x, Nope: y}}", "Template format error: Invalid output property or properties [Nope]"},
	{good + "Outputs: {O: {Value: [a]}}", "Template format error: Output O is malformed. The Value field of every Outputs member must evaluate to a String."},
	{good + "Outputs: {O: {Value: !Ref Nope}}", "Template format error: Unresolved resource dependencies [Nope] in the Outputs block of the template"},
	{value("x") + "Outputs: {O: {Value: !Ref Off}}", "Unresolved resource dependencies [Off] in the Outputs block of the template"},
	{good + "Outputs: {O: {Value: !GetAtt X.Nope}}", "Template error: resource X does not support attribute type Nope in Fn::GetAtt"},
	{good + "Outputs: {O: {Value: x, Condition: Nope}}", "Template format error: Unresolved condition dependency Nope in the Outputs block of the template"},
	{good + "Outputs: {O: {Value: x, Export: name}}", "Template format error: Output O is malformed. The Name field of every Export member must be specified and consist only of alphanumeric characters, colons, or hyphens."},
	{good + "Outputs: {O: {Value: x, Export: {Name: a.b}}}", "Template format error: Output O is malformed. The Name field of every Export member must be specified and consist only of alphanumeric characters, colons, or hyphens."},
	{good + "Outputs: {O: {Value: x, Export: {Name: !Sub 'a-${X}'}}}", "Template format error: Output O is malformed.  The Name field of Export must not depend on any resources, imported values, or Fn::GetAZs."},
	{good + "Outputs: {O: {Value: x, Export: {Name: e}}, Q: {Value: y, Export: {Name: e}}}", "Template format error: The Outputs section contains duplicate Export names: [e]. Specify a unique name for each export."},
	{good + many("Outputs", "O%d: {Value: x}", 201), "Template format error: Number of outputs, 201, is greater than maximum allowed, 200"},
	{good + "Outputs: {" + strings.Repeat("O", 256) + ": {Value: x}}", "Template format error: Output name " + strings.Repeat("O", 256) + " is longer than 255 characters."},
}

var badParameters = []badTemplate{
	{"Parameters: {P: text}" + good, "Template format error: Any Parameters member must be an object."},
	{"Parameters: {AWS::NoValue: {Type: String}}" + good, "Template format error: Parameter name AWS::NoValue is non alphanumeric."},
	{"Parameters: {X: {Type: String}}" + good, "Template format error: Template parameter name and resource name must be unique. Duplicate names: [X]"},
	{parameter("{Default: x}"), "Template format error: Every Parameters object must contain a Type member."},
	{parameter("{Type: AWS::EC2::Nothing::Id}"), "Template format error: Unrecognized parameter type: AWS::EC2::Nothing::Id"},
	{parameter("{Type: String, Nope: x}"), "Invalid template parameter property 'Nope'"},
	{parameter("{Type: String, Default: !Ref AWS::Region}"), "Template format error: Every Default member must be a string."},
	{parameter("{Type: String, AllowedValues: x}"), "Template format error: AllowedValues must be a list of strings."},
	{parameter("{Type: String}"), "Parameters: [P] must have values"},
	{parameter("{Type: String, Default: x, AllowedValues: [a, b]}"), "Parameter 'P' must be one of AllowedValues"},
	{parameter("{Type: String, Default: x, AllowedPattern: '[a-b]+'}"), "Parameter 'P' must match pattern [a-b]+"},
	{parameter("{Type: String, Default: x, AllowedPattern: '['}"), "Template format error: Parameter 'P' AllowedPattern must be a valid regular expression."},
	{parameter("{Type: String, Default: x, AllowedPattern: 'a', ConstraintDescription: only a.}"), "Parameter P failed to satisfy constraint: only a."},
	{parameter("{Type: String, Default: x, MinLength: 2}"), "Parameter 'P' must contain at least 2 characters"},
	{parameter("{Type: String, Default: xxx, MaxLength: 2}"), "Parameter 'P' must contain at most 2 characters"},
	{parameter("{Type: Number, Default: x}"), "Parameter 'P' must be a number."},
	{parameter("{Type: Number, Default: 0, MinValue: 1}"), "Parameter 'P' must be a number not less than 1"},
	{parameter("{Type: Number, Default: 6, MaxValue: 5}"), "Parameter 'P' must be a number not greater than 5"},
	{parameter("{Type: List<Number>, Default: '80,x'}"), "Parameter 'P' must be a number."},
	{parameter("{Type: CommaDelimitedList, Default: 'a,z', AllowedValues: [a, b]}"), "Parameter 'P' must be one of AllowedValues"},
	{parameter("{Type: AWS::SSM::Parameter::Value<String>, Default: /nope}"), "Unable to fetch parameters [/nope] from parameter store for this account."},
	{"Parameters: {" + strings.Repeat("P", 256) + ": {Type: String}}" + good, "Template format error: Parameter name " + strings.Repeat("P", 256) + " is longer than 255 characters."},
	{many("Parameters", "P%d: {Type: String, Default: x}", 201) + good, "Template format error: Number of parameters, 201, is greater than maximum allowed, 200"},
	{parameter("{Type: String, Default: " + strings.Repeat("x", 4097) + "}"), "Parameter 'P' must not be longer than 4096 bytes"},
}

// TestBadTemplates: a stack isn't begun from a template that is wrong. The error is CloudFormation's, and nothing is left and nobody called.
func TestBadTemplates(t *testing.T) {
	w := newWorld(t, nil)
	for class, cases := range map[string][]badTemplate{
		"forms": badForms, "resources": badResources, "functions": badFunctions, "conditions": badConditions, "outputs": badOutputs, "parameters": badParameters,
	} {
		for _, c := range cases {
			t.Run(class, func(t *testing.T) { w.refuses(t, c) })
		}
	}
}

// refuses checks how a stack with a template is refused.
func (w *world) refuses(t *testing.T, c badTemplate) {
	t.Helper()
	_, err := w.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: &c.text, Capabilities: acknowledgedAll})
	var refused smithy.APIError
	if !errors.As(err, &refused) || refused.ErrorCode() != "ValidationError" || c.want != "" && refused.ErrorMessage() != c.want {
		t.Errorf("%.300s\n got %v\nwant %s", c.text, err, c.want)
	}
	w.isEmpty(t)
}

// isEmpty checks that no call has left a stack, and that no service was called for one.
func (w *world) isEmpty(t *testing.T) {
	t.Helper()
	v := w.store.View()
	for s := range v.Stacks.All() {
		t.Errorf("there is a stack %s", s.StackStatus)
	}
	for range v.StackEvents.All() {
		t.Fatal("there are events")
	}
	if len(w.calls) > 0 {
		t.Errorf("%v called services", w.calls)
	}
}

// TestBadCalls: what is wrong with a call besides its template.
func TestBadCalls(t *testing.T) {
	w := newWorld(t, nil)
	role := "Resources: {R: {Type: AWS::IAM::Role, Properties: {AssumeRolePolicyDocument: {Statement: []}}}}"
	named := strings.Replace(role, "Properties: {", "Properties: {RoleName: r, ", 1)
	long := strings.Repeat("s", 129)
	for _, c := range []struct {
		in         cloudformation.CreateStackInput
		code, want string
	}{
		{cloudformation.CreateStackInput{TemplateBody: &role}, "InsufficientCapabilitiesException", "Requires capabilities : [CAPABILITY_IAM]"},
		{
			cloudformation.CreateStackInput{TemplateBody: &named, Capabilities: []types.Capability{types.CapabilityCapabilityIam}},
			"InsufficientCapabilitiesException", "Requires capabilities : [CAPABILITY_NAMED_IAM]",
		},
		{cloudformation.CreateStackInput{}, "ValidationError", "Either Template URL or Template Body must be specified."},
		{
			cloudformation.CreateStackInput{TemplateBody: aws.String("#" + strings.Repeat(" ", 1<<20) + good)}, "ValidationError",
			"1 validation error detected: Value at 'templateBody' failed to satisfy constraint: Member must have length less than or equal to 51200",
		},
		{
			cloudformation.CreateStackInput{TemplateBody: aws.String(good), ResourceTypes: []string{"AWS::EC2::*"}}, "ValidationError",
			"Resource type AWS::SSM::Parameter is not allowed by parameter ResourceTypes [AWS::EC2::*]",
		},
		{
			cloudformation.CreateStackInput{TemplateBody: aws.String(good), Parameters: []types.Parameter{{ParameterKey: aws.String("Q"), ParameterValue: aws.String("q")}}},
			"ValidationError", "Parameters: [Q] do not exist in the template",
		},
		{
			cloudformation.CreateStackInput{TemplateBody: aws.String(good), StackName: &long}, "ValidationError",
			"1 validation error detected: Value '" + long + "' at 'stackName' failed to satisfy constraint: Member must have length less than or equal to 128",
		},
	} {
		if c.in.StackName == nil {
			c.in.StackName = aws.String("s")
		}
		_, err := w.CreateStack(t.Context(), &c.in)
		var refused smithy.APIError
		if !errors.As(err, &refused) || refused.ErrorCode() != c.code || refused.ErrorMessage() != c.want {
			t.Errorf("got %v\nwant %s: %s", err, c.code, c.want)
		}
		w.isEmpty(t)
	}
}

// TestBadOnceBegun: what CloudFormation finds out only once a stack is there rolls it back.
func TestBadOnceBegun(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{value("!ImportValue nope"), "No export named nope found. Rollback requested by user."},
		{good + "Outputs: {O: {Value: !ImportValue nope}}", "No export named nope found. Rollback requested by user."},
		{parameter("{Type: AWS::EC2::KeyPair::KeyName, Default: nope}"), missing("nope")},
		{parameter("{Type: AWS::EC2::KeyPair::KeyName, Default: ''}"), missing("")},
		{parameter("{Type: AWS::EC2::VPC::Id, Default: vpc-00000000}"), missing("vpc-00000000")},
		{parameter("{Type: AWS::EC2::VPC::Id, Default: nonsense}"), missing("nonsense")},
		{parameter("{Type: List<AWS::EC2::Subnet::Id>, Default: subnet-00000000}"), missing("subnet-00000000")},
		{parameter("{Type: AWS::EC2::SecurityGroup::Id, Default: sg-00000000}"), missing("sg-00000000")},
		{parameter("{Type: AWS::EC2::SecurityGroup::GroupName, Default: nope}"), missing("nope")},
		{parameter("{Type: AWS::EC2::Instance::Id, Default: i-0000000000000000f}"), missing("i-0000000000000000f")},
		{parameter("{Type: AWS::EC2::AvailabilityZone::Name, Default: mars-1a}"), missing("mars-1a")},
	} {
		w := newWorld(t, nil)
		w.create("s", c.text)
		w.rolledBack(t, c.text, c.want)
	}
}

func missing(value string) string {
	return "Parameter validation failed: parameter value " + value + " for parameter name P does not exist. Rollback requested by user."
}

// rolledBack checks that the only stack was rolled back for a reason before it had a resource.
func (w *world) rolledBack(t *testing.T, text, want string) {
	t.Helper()
	v := w.store.View()
	s := v.Stacks.Get(w.onlyStack())
	if s.StackStatus != types.StackStatusRollbackComplete {
		t.Errorf("%s: the stack is %s", text, s.StackStatus)
	}
	if got := w.reason(*s.StackId, types.ResourceStatusRollbackInProgress); got != want {
		t.Errorf("%s\n got %q\nwant %q", text, got, want)
	}
	for r := range v.ResourcesOf(*s.StackId) {
		t.Errorf("%s: there is a resource %s %s", text, r.Name, r.Status)
	}
}

// reason returns the reason of a stack's own event.
func (w *world) reason(stack string, status types.ResourceStatus) string {
	for e := range w.store.View().EventsOf(stack) {
		if e.ResourceStatus == status && *e.PhysicalResourceId == stack {
			return aws.ToString(e.ResourceStatusReason)
		}
	}
	return "no " + string(status)
}

const exporting = good + "Outputs: {O: {Value: one, Export: {Name: e}}}"

// TestExportsInUse: what others import stays as it is, and nobody else exports it.
func TestExportsInUse(t *testing.T) {
	w := newWorld(t, nil)
	w.create("a", exporting)
	w.create("b", value("!ImportValue e"))
	w.create("c", exporting)
	a, c := find(w.store.View(), "a"), find(w.store.View(), "c")
	if got := w.reason(*c.StackId, types.ResourceStatusRollbackInProgress); got != "Export with name e is already exported by stack a. Rollback requested by user." {
		t.Errorf("a second export: %s", got)
	}
	_, err := w.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: aws.String("a")})
	check(t, "delete", err, "Export e cannot be deleted as it is in use by b")
	for _, u := range []struct{ text, want string }{
		{strings.Replace(exporting, "one", "two", 1), "Update canceled. Cannot update export e as it is in use by b."},
		{good + "Outputs: {O: {Value: one}}", "Delete canceled. Cannot delete export e as it is in use by b."},
	} {
		w.become("a", u.text)
		if got := w.reason(*a.StackId, types.ResourceStatusUpdateRollbackInProgress); got != u.want {
			t.Errorf("%s\n got %s\nwant %s", u.text, got, u.want)
		}
		if s := find(w.store.View(), "a"); s.StackStatus != types.StackStatusUpdateRollbackComplete || *s.Outputs[0].OutputValue != "one" {
			t.Errorf("the stack is %s with %s", s.StackStatus, *s.Outputs[0].OutputValue)
		}
	}
	in := &cloudformation.UpdateStackInput{StackName: aws.String("a"), TemplateBody: aws.String(value("!ImportValue nope"))}
	_, err = w.UpdateStack(t.Context(), in)
	check(t, "an update without export", err, "No export named nope found")
}

// TestBadDynamicReferences: what they refer to is found out when the resource is made.
func TestBadDynamicReferences(t *testing.T) {
	for _, reference := range []string{"{{resolve:ssm:/nope}}", "{{resolve:ssm:/nope:7}}", "{{resolve:secretsmanager:nope}}"} {
		w := newWorld(t, nil)
		w.create("s", value("'"+reference+"'"))
		if s := find(w.store.View(), "s"); s.StackStatus != types.StackStatusRollbackComplete {
			t.Errorf("%s: the stack is %s", reference, s.StackStatus)
		}
		for range w.store.View().Parameters.All() {
			t.Errorf("%s: there is a parameter", reference)
		}
	}
}
