package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const bucket = "Resources: {B: {Type: 'AWS::S3::Bucket'}}\n"

// with returns a template whose only resource has one property.
func with(property string) string {
	return "Resources:\n  A: {Type: 'AWS::SQS::Queue'}\n  R:\n    Type: AWS::SQS::Queue\n    Properties:\n      P: " + property + "\n"
}

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("[", 120) + strings.Repeat("]", 120)
	for _, c := range []struct{ text, want string }{
		{"Resources: {B: [}", "Template format error: YAML not well-formed. (line 1, column 1)"},
		{"{\"Resources\": {\n\"B\": }}", "Template format error: JSON not well-formed. (line 2, column 7)"},
		{`{"this is invalid JSON"="bobbins"}`, "Template format error: JSON not well-formed. (line 1, column 25)"},
		{bucket + "---\n" + bucket, "Template format error: unsupported structure."},
		{"- a", "Template format error: unsupported structure."},
		{"", "Template format error: unsupported structure."},
		{"Resources: {}", "Template format error: At least one Resources member must be defined."},
		{"Description: x", "Template format error: At least one Resources member must be defined."},
		{bucket + "Foo: 1\nBar: 2", "Invalid template property or properties [Foo, Bar]"},
		{"AWSTemplateFormatVersion: 2019-09-09\n" + bucket, "Template format error: 2019-09-09 is not a supported value for AWSTemplateFormatVersion."},
		{bucket + "Description: [x]", "Template format error: Every Description member must be a string."},
		{"Resources: {B: {Type: 'AWS::S3::Bucket', Properties: {Name: }}}", "[/Resources/B/Properties/Name] 'null' values are not allowed in templates"},
		{"Resources: {B-1: {Type: 'AWS::S3::Bucket'}}", "Template format error: Resource name B-1 is non alphanumeric."},
		{"Resources: {B: {Properties: {}}}", "Template format error: [/Resources/B] Every Resources object must contain a Type member."},
		{"Resources: {B: {Type: X, Foo: {}}}", "Invalid template resource property 'Foo'"},
		{"Resources: {B: {Type: X, DeletionPolicy: Keep}}", "Template format error: Unrecognized DeletionPolicy Keep for resource B"},
		{"Resources: {B: {Type: X, DependsOn: {a: b}}}", "Template format error: DependsOn must be a string or list of strings."},
		{bucket + "Outputs: {O: {Description: x}}", "Template format error: Every Outputs member must contain a Value object"},
		{"Parameters: {B: {Type: String}}\n" + bucket, "Template format error: Template parameter name and resource name must be unique. Duplicate names: [B]"},
		{"Parameters: {P: {Default: x}}\n" + bucket, "Template format error: Every Parameters object must contain a Type member."},
		{"Parameters: {P: {Type: Strin}}\n" + bucket, "Template format error: Unrecognized parameter type: Strin"},
		{"Parameters: {P: {Type: 'List<AWS::EC2::Subnet::Id'}}\n" + bucket, "Template format error: Unrecognized parameter type: List<AWS::EC2::Subnet::Id"},
		{"Parameters: {P: {Type: String, Foo: x}}\n" + bucket, "Invalid template parameter property 'Foo'"},
		{"Parameters: {P: {Type: String, Default: [x]}}\n" + bucket, "Template format error: Every Default member must be a string."},
		{"Parameters: {P: {Type: String, Default: x, AllowedValues: [a, b]}}\n" + bucket, "Parameter 'P' must be one of AllowedValues"},
		{"Mappings: {M: {a: b}}\n" + bucket, "Template format error: Every Mappings member a must be a map"},
		{"Mappings: {M: {a: {b: {c: d}}}}\n" + bucket, "Template format error: Every Mappings attribute must be a String or a List."},
		{"Mappings: {M: {a: {b: [{'Fn::GetAtt': []}]}}}\n" + bucket, "Template format error: Every Mappings attribute must be a String or a List."},
		{"Conditions: {C: yes}\n" + bucket, "Template format error: Conditions can only be boolean operations on parameters and other conditions"},
		{"Conditions: {C: !Equals [!Ref B, x]}\n" + bucket, "Template format error: Unresolved dependencies [B]. Cannot reference resources in the Conditions block of the template"},
		{"Conditions: {C: !Not [!Condition D]}\n" + bucket, "Template format error: Unresolved condition dependency D in the Conditions block of the template"},
		{
			"Conditions: {C: !Not [!Condition D], D: !Not [!Condition C]}\n" + bucket,
			"Template format error: Circular dependency between conditions: [C, D]",
		},
		{with("!Ref Nope"), "Template format error: Unresolved resource dependencies [Nope] in the Resources block of the template"},
		{with("!Sub '${Nope} ${!Fine} ${A}'"), "Template format error: Unresolved resource dependencies [Nope] in the Resources block of the template"},
		{with("!Sub '${Nope.Arn}'"), "Template error: instance of Fn::Sub references invalid resource attribute Nope.Arn"},
		{with("!GetAtt Nope.Arn"), "Template error: instance of Fn::GetAtt references undefined resource Nope"},
		{
			with("!GetAtt A"),
			"Template error: every Fn::GetAtt object requires two non-empty parameters, the resource name and the resource attribute",
		},
		{with("!If [Nope, a, b]"), "Template error: unresolved condition dependency Nope in Fn::If"},
		{with("!FindInMap [Nope, a, b]"), "Template error: Mapping named 'Nope' is not present in the 'Mappings' section of template."},
		{with("{Ref: [A]}"), "Template error: All References must be of type string"},
		{"Transform: 'AWS::Serverless-2016-10-31'\nGlobals: {}", "No transform named AWS::Serverless-2016-10-31 found."},
		{bucket + "Transform: [{Name: Macro, Parameters: {A: b}}]", "No transform named Macro found."},
		{with("{'Fn::Transform': {Name: Macro}}"), "No transform named Macro found."},
		{with("!Contains [[a], a]"), unsupported("Fn::Contains")},
		{with("{'Fn::Foo': x}"), unsupported("Fn::Foo")},
		{"Rules: {R: {Assertions: []}}\n" + bucket, "Template format error: Every Rules member must contain a list of Assertions, each with an Assert"},
		{"Rules: {R: {Foo: x}}\n" + bucket, "Template format error: Invalid rule property or properties [Foo]"},
		{
			"Rules: {R: {Assertions: [{Assert: !Equals [!Ref B, x]}]}}\n" + bucket,
			"Template format error: Unresolved dependencies [B]. Cannot reference resources in the Rules block of the template",
		},
		{with("!Foo A"), "Template format error: YAML not well-formed. (line 6, column 10)"},
		{with("!Ref R"), "Circular dependency between resources: [R]"},
		{
			"Resources: {C: {Type: X, DependsOn: A}, A: {Type: X, DependsOn: [B]}, B: {Type: X, Properties: {P: !Sub '${C.Arn}'}}}",
			"Circular dependency between resources: [A, B, C]",
		},
		{bucket + "Outputs: {O: {Value: !Ref Nope}}", "Template format error: Unresolved resource dependencies [Nope] in the Outputs block of the template"},
		{with("&a {x: *a}"), "Template error: YAML aliases are not allowed in CloudFormation templates"},
		{with(deep), "Template format error: values are nested deeper than 100 levels (line 6, column 107)"},
	} {
		_, err := Parse([]byte(c.text))
		var e *Error
		if !errors.As(err, &e) || e.Message != c.want {
			t.Errorf("%.100s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func unsupported(function string) string {
	return "Template error: Encountered unsupported function: " + function + " Supported functions are: [Fn::And, Fn::Base64, Fn::Cidr, " +
		"Fn::Equals, Fn::FindInMap, Fn::GetAZs, Fn::GetAtt, Fn::If, Fn::ImportValue, Fn::Join, Fn::Not, Fn::Or, Fn::Select, Fn::Split, Fn::Sub, Ref]"
}

// TestPublishedYAML has what is found in templates that people have published.
func TestPublishedYAML(t *testing.T) {
	tree, err := Parse([]byte(`AWSTemplateFormatVersion: '2010-09-09'
Parameters:
  AMI:
    Type: String
    Description: the first
    Default: ami-1   
    Description: the last counts
Rules:
  CheckVersion:
    Assertions:
    - Assert: {'Fn::Not': [{'Fn::Contains': [['1', '2'], {Ref: AMI}]}]}
      AssertDescription: a newer one, please
    - Assert: !EachMemberIn [!ValueOfAll ['AWS::EC2::Subnet::Id', VpcId], !RefAll 'AWS::EC2::VPC::Id']
Resources:
  Role:
    Type: AWS::IAM::Role
    Properties:
      Document:
        Version: 2012-10-17
        Statement: [{Effect: Allow, Condition: {Bool: {'aws:SecureTransport': yes}}}]
      Privileged: 'true'
      Memory: '15000'
      Count: 2
      Command: one
        two
      On: on
    DependsOn: Other
  Other: {Type: 'AWS::SQS::Queue'}
`))
	if err != nil {
		t.Fatal(err)
	}
	if p := tree.Parameters[0]; p.Description != "the last counts" || *p.Default != "ami-1" {
		t.Errorf("the parameter is %+v", p)
	}
	e := evaluation(t, tree, nil)
	got, err := e.Value(tree.Resources[0].Properties)
	want := map[string]any{
		"Document": map[string]any{
			"Version":   "2012-10-17",
			"Statement": []any{map[string]any{"Effect": "Allow", "Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": true}}}},
		},
		"Privileged": "true", "Memory": "15000", "Count": json.Number("2"), "Command": "one two", "On": true,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("properties are %v, %v", got, err)
	}
	if needs := tree.Needs("Role"); !reflect.DeepEqual(needs, []string{"Other"}) {
		t.Errorf("it needs %v", needs)
	}
}

// evaluation evaluates a template's conditions in a scope where the resource A exists and the resource New doesn't.
func evaluation(t *testing.T, tree *Template, given map[string]string) *Evaluation {
	t.Helper()
	values, err := tree.Values(given)
	if err != nil {
		t.Fatal(err)
	}
	e, err := tree.Evaluate(Scope{
		Parameters: values, AccountID: "123456789012", Region: "us-east-1", StackName: "s", StackID: "arn:s", NotificationARNs: []string{"arn:n"},
		Zones: func(region string) []string { return []string{region + "a", region + "b"} },
		Ref: func(resource string) any {
			if resource == "New" {
				return Unknown{}
			}
			return "id-of-" + resource
		},
		Attribute: func(resource, name string) (any, error) {
			if resource == "New" {
				return Unknown{}, nil
			}
			return resource + "'s " + name, nil
		},
		Import: func(name string) (any, error) {
			if name != "there" {
				return nil, fail("No export named %s found. Rollback requested by user.", name)
			}
			return "imported", nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

const functionsHead = `Parameters:
  Env: {Type: String, Default: dev}
  Subnets: {Type: CommaDelimitedList, Default: "a, b,c"}
  None: {Type: CommaDelimitedList, Default: ""}
  Without: {Type: String, Default: "AWS::NoValue"}
Mappings:
  Regions:
    us-east-1: {AMI: ami-1, Sizes: [x, y], Count: 3}
Conditions:
  IsDev: !Equals [!Ref Env, dev]
  IsProd: !Not [!Condition IsDev]
  Both: !And [!Condition IsDev, !Condition IsProd]
  Either: !Or [!Condition IsDev, !Condition IsProd]
  East: {"Fn::Equals": [{"Fn::FindInMap": [Regions, {Ref: "AWS::Region"}, AMI]}, ami-1]}
Resources:
  A: {Type: 'AWS::SQS::Queue'}
  New: {Type: 'AWS::SQS::Queue'}
  Prod: {Type: 'AWS::SQS::Queue', Condition: IsProd}
  R:
    Type: AWS::SQS::Queue
    Properties:
      P: `

func TestFunctions(t *testing.T) {
	for _, c := range []struct {
		text string
		want any
	}{
		{"!Ref Env", "dev"},
		{"!Ref A", "id-of-A"},
		{"!Ref New", Unknown{}},
		{"!Ref Subnets", []any{"a", "b", "c"}},
		{"!Ref None", []any{}},
		{"!Ref AWS::AccountId", "123456789012"},
		{"[!Ref AWS::Region, !Ref AWS::Partition, !Ref AWS::URLSuffix, !Ref AWS::StackName, !Ref AWS::StackId]", []any{"us-east-1", "aws", "amazonaws.com", "s", "arn:s"}},
		{"!Ref AWS::NotificationARNs", []any{"arn:n"}},
		{"{X: 1, Y: !Ref 'AWS::NoValue'}", map[string]any{"X": json.Number("1")}},
		{"{X: 1, Y: !Ref Without}", map[string]any{"X": json.Number("1")}},
		{"{X: AWS::NoValue, Y: !Sub '${Without}'}", map[string]any{"X": "AWS::NoValue", "Y": "AWS::NoValue"}},
		{"[a, !If [IsProd, b, !Ref 'AWS::NoValue'], c]", []any{"a", "c"}},
		{"!GetAtt A.Arn", "A's Arn"},
		{"!GetAtt A.Endpoint.Port", "A's Endpoint.Port"},
		{"{'Fn::GetAtt': [A, !Ref Env]}", "A's dev"},
		{"{'Fn::GetAtt': A.Endpoint.Port}", "A's Endpoint.Port"},
		{"!GetAtt New.Arn", Unknown{}},
		{"!If [IsDev, small, big]", "small"},
		{"!If [Both, 1, 2]", json.Number("2")},
		{"!If [Either, 1, 2]", json.Number("1")},
		{"!If [East, !If [IsProd, x, y], z]", "y"},
		{"!If [IsProd, !Ref Prod, none]", "none"},
		{"!Join ['-', [a, 1, true, !Ref Env]]", "a-1-true-dev"},
		{"!Join ['-', !Ref Subnets]", "a-b-c"},
		{"!Join ['', [a, !Ref New]]", Unknown{}},
		{"!Sub '${Env}-${A}-${A.Arn}-${AWS::Region}-${!Env}-$5'", "dev-id-of-A-A's Arn-us-east-1-${Env}-$5"},
		{"!Sub ['${Env}${X}', {X: !Select [0, !Ref Subnets], Env: own}]", "owna"},
		{"!Sub '${New}'", Unknown{}},
		{"!Select [1, [a, b]]", "b"},
		{"!Select ['2', !Ref Subnets]", "c"},
		{"!Select [0, !GetAZs '']", "us-east-1a"},
		{"!Select [0, [!Ref New]]", Unknown{}},
		{"!GetAZs {Ref: 'AWS::Region'}", []any{"us-east-1a", "us-east-1b"}},
		{"!GetAZs eu-west-1", []any{"eu-west-1a", "eu-west-1b"}},
		{"!Split [',', 'a,b,,c']", []any{"a", "b", "", "c"}},
		{"!Split [',', !Ref New]", Unknown{}},
		{"!FindInMap [Regions, !Ref AWS::Region, AMI]", "ami-1"},
		{"!FindInMap [Regions, us-east-1, Sizes]", []any{"x", "y"}},
		{"!FindInMap [Regions, us-east-1, Count]", json.Number("3")},
		{"!Base64 hello", "aGVsbG8="},
		{"!Base64 {'Fn::Sub': '${Env}'}", "ZGV2"},
		{"!ImportValue there", "imported"},
		{"!Cidr [192.168.0.0/24, 6, 5]", []any{
			"192.168.0.0/27", "192.168.0.32/27", "192.168.0.64/27", "192.168.0.96/27", "192.168.0.128/27", "192.168.0.160/27",
		}},
		{"!Cidr [10.0.7.9/16, '2', '8']", []any{"10.0.0.0/24", "10.0.1.0/24"}},
		{"!Cidr [10.0.0.0/16, 2, 12]", []any{"10.0.0.0/20", "10.0.16.0/20"}},
		{"!Cidr ['2600:1f18:abc:de00::/56', 2, 64]", []any{"2600:1f18:abc:de00::/64", "2600:1f18:abc:de01::/64"}},
	} {
		got, err := property(t, c.text)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s\n got %v, %v\nwant %v", c.text, got, err, c.want)
		}
	}
}

// property evaluates a property, whose template is parsed as YAML and as JSON.
func property(t *testing.T, text string) (any, error) {
	t.Helper()
	tree, err := Parse([]byte(functionsHead + text + "\n"))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	got, err := evaluation(t, tree, nil).Value(tree.resources["R"].Properties.Get("P"))
	root, err2 := parseText([]byte(functionsHead + text + "\n"))
	asJSON, err3 := json.Marshal(root)
	again, err4 := Parse(asJSON)
	if err := errors.Join(err2, err3, err4); err != nil {
		t.Fatalf("%s as JSON: %v", text, err)
	}
	same, errSame := evaluation(t, again, nil).Value(again.resources["R"].Properties.Get("P"))
	if !reflect.DeepEqual(got, same) || fmt.Sprint(err) != fmt.Sprint(errSame) {
		t.Errorf("%s: YAML gives %v, %v and JSON %v, %v", text, got, err, same, errSame)
	}
	return got, err
}

func TestFunctionsRefuse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"!Ref Prod", "Template format error: Unresolved resource dependencies [Prod] in the Resources block of the template"},
		{"!GetAtt Prod.Arn", "Template format error: Unresolved resource dependencies [Prod] in the Resources block of the template"},
		{"!If [IsDev, a]", "Template error: Fn::If requires a list argument with three elements"},
		{"!Join ['-', a]", "Template error: " + joinNeeds},
		{"!Join ['-', [[a]]]", "Template error: " + joinNeeds},
		{"!Sub ['${X}', {X: [a]}]", "Template error: " + subValue},
		{"!Select [3, [a, b]]", "Template error: " + selectNeeds},
		{"!Select [3, !Ref Subnets]", "Template error: Fn::Select cannot select nonexistent value at index 3"},
		{"!Select [x, [a, b]]", "Template error: " + selectNeeds},
		{"!Split [',']", "Template error: " + splitNeeds},
		{"!FindInMap [Regions, eu-west-1, AMI]", "Template error: Unable to get mapping for Regions::eu-west-1::AMI"},
		{"!FindInMap [Regions, us-east-1]", "Template error: " + findNeeds},
		{"!FindInMap [Regions, !Ref New, AMI]", "Template error: " + findNeeds},
		{"!Base64 [a]", "Template error: every Fn::Base64 object must have a String-typed value."},
		{"!ImportValue missing", "No export named missing found. Rollback requested by user."},
		{"!Equals [a, b]", "Template error: Fn::Equals is only allowed in the Conditions block of the template"},
		{"!Cidr [10.0.0.0/24, 9, 5]", "Template error: Fn::Cidr cannot make 9 blocks of 5 bits in 10.0.0.0/24"},
		{"!Cidr [10.0.0.0/24, 1, 40]", "Template error: Fn::Cidr cannot make 1 blocks of 40 bits in 10.0.0.0/24"},
		{"!Cidr [10.0.0.0/24, 0, 5]", "Template error: " + cidrNeeds},
		{"!Cidr [10.0.0/24, 1, 5]", "Template error: Fn::Cidr: 10.0.0/24 is not a valid CIDR block"},
	} {
		if got, err := property(t, c.text); err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v, %v\nwant %s", c.text, got, err, c.want)
		}
	}
}

// TestFunctionsMakeNoMoreThanFits: functions inside functions multiply what they make, and how often they are called.
func TestFunctionsMakeNoMoreThanFits(t *testing.T) {
	nested := func(text, inner string) string {
		for range 20 {
			inner = fmt.Sprintf("!Sub ['%s', {a: %s}]", text, inner)
		}
		return inner
	}
	commas := strings.Repeat(",", 4096)
	for name, text := range map[string]string{
		"text":       nested("${a}${a}${a}${a}", "xxxxxxxxxx"),
		"calls":      nested("${a}${a}${a}${a}", "''"),
		"delimiters": "!Join ['" + commas + "', !Split [',', !Join ['" + commas + "', !Split [',', '" + commas + "']]]]",
		"base64":     strings.Repeat("{'Fn::Base64': ", 40) + strings.Repeat("x", 4096) + strings.Repeat("}", 40),
	} {
		got, err := property(t, text)
		if want := "Template error: functions together make more than 1048576 bytes"; err == nil || err.Error() != want {
			t.Errorf("%s: got %.100v, %v", name, got, err)
		}
	}
	fits := strings.Repeat("x", 300_000)
	if got, err := property(t, "!Base64 {'Fn::Sub': '"+fits+"'}"); err != nil || len(got.(string)) != 400_000 {
		t.Errorf("what fits: %v", err)
	}
}

func TestConditionsRefuse(t *testing.T) {
	for _, c := range []struct{ condition, want string }{
		{"!And [!Equals [a, a]]", "Template error: every Fn::And object requires a list of at least 2 and at most 10 boolean parameters."},
		{"!Not [!Equals [a, a], !Equals [a, a]]", "Template error: every Fn::Not object requires one boolean parameter."},
		{"!Equals [a]", "Template error: every Fn::Equals object requires a list of 2 string parameters."},
		{"!Not [a]", "Template format error: Conditions can only be boolean operations on parameters and other conditions"},
		{"!If [C, a, b]", "Template format error: Conditions can only be boolean operations on parameters and other conditions"},
	} {
		tree, err := Parse([]byte("Conditions:\n  C: " + c.condition + "\n" + bucket))
		if err == nil {
			_, err = tree.Evaluate(Scope{})
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.condition, err, c.want)
		}
	}
}

func TestParameters(t *testing.T) {
	tree, err := Parse([]byte(`Parameters:
  Name: {Type: String, AllowedPattern: '[a-z]+', MinLength: '2', MaxLength: 4}
  Kind: {Type: String, AllowedValues: [x, 1], Default: 1}
  Slow: {Type: String, AllowedPattern: '(?=a)(a+)+b', Default: ab}
  Many: {Type: CommaDelimitedList, AllowedPattern: '(?!b).*', Default: a}
  Ahead: {Type: String, AllowedPattern: '(?=^.{3,63}$)(?!.*--)[a-z-]+', Default: a-b}
  Said: {Type: String, AllowedPattern: 'a.*', Default: a, ConstraintDescription: must begin with an a.}
  Count: {Type: Number, MinValue: 1, MaxValue: 5, Default: 2}
  Ports: {Type: List<Number>, Default: '80, 443'}
  Image: {Type: 'AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>', Default: /aws/image, AllowedPattern: 'ami-.*'}
  Subnets: {Type: 'List<AWS::EC2::Subnet::Id>', Default: 'subnet-1,subnet-2'}
` + bucket))
	if err != nil {
		t.Fatal(err)
	}
	got, err := tree.Values(map[string]string{"Name": "abc"})
	want := map[string]any{
		"Name": "abc", "Kind": "1", "Slow": "ab", "Ahead": "a-b", "Many": []any{"a"}, "Said": "a", "Count": "2", "Ports": []any{"80", "443"}, "Image": "/aws/image",
		"Subnets": []any{"subnet-1", "subnet-2"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	image := tree.parameters["Image"]
	if element, isList := image.Element(); image.Stored() != "AWS::EC2::Image::Id" || element != "AWS::EC2::Image::Id" || isList {
		t.Errorf("the image is %q of %q, a list %v", image.Stored(), element, isList)
	}
	for _, c := range []struct{ name, value, want string }{
		{"Nope", "x", "Parameters: [Nope] do not exist in the template"},
		{"Kind", "x", "Parameters: [Name] must have values"},
		{"Name", "a", "Parameter 'Name' must contain at least 2 characters"},
		{"Name", "abcde", "Parameter 'Name' must contain at most 4 characters"},
		{"Name", "ab1", "Parameter 'Name' must match pattern [a-z]+"},
		{"Name", strings.Repeat("a", 5000), "Parameter 'Name' must not be longer than 4096 bytes"},
		{"Kind", "y", "Parameter 'Kind' must be one of AllowedValues"},
		{"Ahead", "a--b", "Parameter 'Ahead' must match pattern (?=^.{3,63}$)(?!.*--)[a-z-]+"},
		{"Slow", strings.Repeat("a", 100), "Parameter 'Slow' has an AllowedPattern that takes too long"},
		{"Many", strings.Repeat("a,", maxTrying+1), "Parameter 'Many' has an AllowedPattern that looks ahead or back, of which a template checks at most 250 values"},
		{"Name", "abc\n", "Parameter 'Name' must match pattern [a-z]+"},
		{"Said", "b", "Parameter Said failed to satisfy constraint: must begin with an a."},
		{"Count", "x", "Parameter 'Count' must be a number."},
		{"Count", "0", "Parameter 'Count' must be a number not less than 1"},
		{"Count", "5.5", "Parameter 'Count' must be a number not greater than 5"},
		{"Ports", "80,x", "Parameter 'Ports' must be a number."},
	} {
		given := map[string]string{c.name: c.value}
		if c.name != "Kind" || c.value == "y" {
			given = map[string]string{"Name": "abc", c.name: c.value}
		}
		if _, err := tree.Values(given); err == nil || err.Error() != c.want {
			t.Errorf("%s=%.20s\n got %v\nwant %s", c.name, c.value, err, c.want)
		}
	}
}

// FuzzParse: no template makes it panic, and what parses can be evaluated or is refused with an *Error.
func FuzzParse(f *testing.F) {
	f.Add(functionsHead + "!Sub '${Env}-${A.Arn}'\n")
	f.Add(`{"Resources": {"B": {"Type": "AWS::S3::Bucket", "Properties": {"P": {"Fn::Join": ["", [{"Ref": "B2"}]]}}}, "B2": {"Type": "X"}}}`)
	f.Add(with("!Cidr [!Select [0, ['2600::/40']], 256, 64]"))
	f.Add(loops + "Resources: {'Fn::ForEach::X': [N, !Ref L, {'R&{N}': {Type: T, Properties: {P: {'Fn::Length': [!Ref N]}}}}]}")
	f.Fuzz(func(t *testing.T, text string) {
		tree, err := Parse([]byte(text))
		var e *Error
		if err != nil {
			if !errors.As(err, &e) {
				t.Errorf("the error is %v", err)
			}
			return
		}
		values, err := tree.Values(nil)
		if err != nil {
			return
		}
		evaluation, err := tree.Evaluate(Scope{
			Parameters: values,
			Zones:      func(string) []string { return []string{"a"} },
			Ref:        func(string) any { return "ref" },
			Attribute:  func(string, string) (any, error) { return Unknown{}, nil },
			Import:     func(string) (any, error) { return "imported", nil },
		})
		if err != nil {
			return
		}
		for _, r := range tree.Resources {
			if _, err := evaluation.Value(r.Properties); err != nil && !errors.As(err, &e) {
				t.Errorf("the error is %v", err)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text := strings.Builder{}
	text.WriteString("Resources:\n")
	for i := range maxResources {
		fmt.Fprintf(&text, "  R%d:\n    Type: AWS::SQS::Queue\n    Properties:\n      QueueName: !Sub 'q-%d-${AWS::Region}'\n", i, i)
	}
	for b.Loop() {
		if _, err := Parse([]byte(text.String())); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCapabilities(t *testing.T) {
	for _, c := range []struct {
		resources           string
		capabilities, types []string
	}{
		{"{B: {Type: 'AWS::S3::Bucket'}}", nil, nil},
		{"{R: {Type: 'AWS::IAM::Role'}, P: {Type: 'AWS::IAM::InstanceProfile'}, S: {Type: 'AWS::IAM::Role'}}", []string{"CAPABILITY_IAM"}, []string{"AWS::IAM::Role", "AWS::IAM::InstanceProfile"}},
		{"{R: {Type: 'AWS::IAM::Role', Properties: {RoleName: x}}}", []string{"CAPABILITY_NAMED_IAM"}, []string{"AWS::IAM::Role"}},
		{"{S: {Type: 'AWS::CloudFormation::Stack'}}", nil, nil},
	} {
		tree, err := Parse([]byte("Resources: " + c.resources))
		if err != nil {
			t.Fatal(err)
		}
		if capabilities, types := tree.Capabilities(); !reflect.DeepEqual(capabilities, c.capabilities) || !reflect.DeepEqual(types, c.types) {
			t.Errorf("%s needs %v for %v", c.resources, capabilities, types)
		}
	}
}
