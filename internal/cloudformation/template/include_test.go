package template

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// parts are what templates include, by bucket and key.
var parts = map[string]string{
	"b queue.yml":    "Q: {Type: T, Properties: {P: {Ref: A}}}",
	"b queue.json":   `{"Q": {"Type": "T"}}`,
	"b two.yml":      "Q: {Type: T}\nR: {Type: T}",
	"b short.yml":    "Q: {Type: T, Properties: {P: !Ref A}}",
	"b list.yml":     "[a]",
	"b broken.yml":   "a: [",
	"b nothing.yml":  "",
	"b again.yml":    "Fn::Transform: {Name: AWS::Include, Parameters: {Location: s3://b/queue.yml}}",
	"b macro.yml":    "Fn::Transform: {Name: Macro}",
	"b sections.yml": "Mappings: {M: {k: {v: x}}}\nOutputs: {O: {Value: o}}",
	"b mapping.yml":  "k: {v: x}",
	"b us-east-1/x":  "P: regional",
	"b long":         "A: " + strings.Repeat("a", maxExpanded/2),
}

func fetchPart(bucket, key string) ([]byte, error) {
	if text, there := parts[bucket+" "+key]; there {
		return []byte(text), nil
	}
	return nil, errors.New("there is no " + bucket + " " + key)
}

// include is a call of AWS::Include.
func include(location string) string {
	return "{Name: AWS::Include, Parameters: {Location: " + location + "}}"
}

// included expands a template's includes and parses what comes of it.
func included(text string) (string, error) {
	values := func(t *Template) (map[string]any, error) { return t.Values(nil) }
	scope := Scope{Region: "us-east-1"}
	got, err := Include([]byte(text), scope, values, fetchPart)
	if err != nil || got == nil {
		return text, err
	}
	_, err = ParseFor(got, scope, values)
	return string(got), err
}

func TestInclude(t *testing.T) {
	const a = "Parameters: {At: {Type: String, Default: s3://b/queue.yml}}\n"
	for _, c := range []struct{ text, want string }{
		{"Resources: {A: {Type: T}}", "Resources: {A: {Type: T}}"},
		{"Resources: {A: {Type: T}, Fn::Transform: " + include("s3://b/queue.yml") + "}",
			`{"Resources":{"A":{"Type":"T"},"Q":{"Type":"T","Properties":{"P":{"Ref":"A"}}}}}`},
		{"Resources: {Fn::Transform: " + include("s3://b/queue.json") + "}", `{"Resources":{"Q":{"Type":"T"}}}`},
		{"Resources: {Fn::Transform: [" + include("s3://b/queue.json") + "], A: {Type: T}}", `{"Resources":{"Q":{"Type":"T"},"A":{"Type":"T"}}}`},
		{"Transform: " + include("s3://b/sections.yml") + "\nResources: {A: {Type: T}}",
			`{"Resources":{"A":{"Type":"T"}},"Mappings":{"M":{"k":{"v":"x"}}},"Outputs":{"O":{"Value":"o"}}}`},
		{"Transform: [AWS::LanguageExtensions, " + include("s3://b/sections.yml") + "]\nResources: {'Fn::ForEach::X': [N, [A], {'R${N}': {Type: T}}]}",
			`{"Transform":["AWS::LanguageExtensions"],"Resources":{"Fn::ForEach::X":["N",["A"],{"R${N}":{"Type":"T"}}]},"Mappings":{"M":{"k":{"v":"x"}}},"Outputs":{"O":{"Value":"o"}}}`},
		{a + "Resources: {A: {Type: T}, Fn::Transform: " + include("!Ref At") + "}",
			`{"Parameters":{"At":{"Type":"String","Default":"s3://b/queue.yml"}},"Resources":{"A":{"Type":"T"},"Q":{"Type":"T","Properties":{"P":{"Ref":"A"}}}}}`},
		{"Resources: {A: {Type: T, Properties: {Fn::Transform: " + include("!Sub 's3://b/${AWS::Region}/x'") + "}}}",
			`{"Resources":{"A":{"Type":"T","Properties":{"P":"regional"}}}}`},
		{"Mappings: {M: {Fn::Transform: " + include("s3://b/mapping.yml") + "}}\nResources: {A: {Type: T}}",
			`{"Mappings":{"M":{"k":{"v":"x"}}},"Resources":{"A":{"Type":"T"}}}`},
	} {
		if got, err := included(c.text); err != nil || got != c.want {
			t.Errorf("%s\n got %s, %v\nwant %s", c.text, got, err, c.want)
		}
	}
}

func TestIncludeRefuses(t *testing.T) {
	const failed = "Transform AWS::Include failed with: "
	const invalid = failed + "The specified S3 object's content should be valid Yaml/JSON"
	in := func(location string) string {
		return "Resources: {A: {Type: T}, Fn::Transform: " + include(location) + "}"
	}
	many := &strings.Builder{}
	for i := range maxIncludes + 1 {
		fmt.Fprintf(many, "R%d: {Type: T, Properties: {Fn::Transform: %s}}, ", i, include("s3://b/us-east-1/x"))
	}
	for _, c := range []struct{ text, want string }{
		{in("../queue.yml"), failed + "The location parameter is not a valid S3 uri."},
		{in("https://b.s3.amazonaws.com/queue.yml"), failed + "The location parameter is not a valid S3 uri."},
		{in("s3://b/"), failed + "The location parameter is not a valid S3 uri."},
		{in("!Ref Nowhere"), failed + "The location parameter is not a valid S3 uri."},
		{"Transform: AWS::Include\nResources: {A: {Type: T}}", failed + "The location parameter is not a valid S3 uri."},
		{in("s3://b/nope"), "there is no b nope"},
		{in("s3://b/short.yml"), invalid},
		{in("s3://b/list.yml"), invalid},
		{in("s3://b/broken.yml"), invalid},
		{in("s3://b/nothing.yml"), invalid},
		{in("s3://b/again.yml"), invalid},
		{in("s3://b/macro.yml"), "No transform named Macro found."},
		{"Transform: Macro\n" + in("s3://b/queue.yml"), "No transform named Macro found."},
		{"Transform: [AWS::LanguageExtensions, Macro]\nResources: {A: {Type: T}}", "No transform named Macro found."},
		{"Transform: AWS::LanguageExtensions\nResources: {A: {Type: T, Properties: {Fn::Transform: {Name: Macro}}}}", "No transform named Macro found."},
		{"Resources: {Q: {Type: T}, Fn::Transform: " + include("s3://b/queue.yml") + "}", failed + "the key Q is there already"},
		{"Transform: " + include("s3://b/sections.yml") + "\nOutputs: {P: {Value: p}}\nResources: {A: {Type: T}}", failed + "the key Outputs is there already"},
		{"Resources: {" + many.String() + "}", failed + "a template may include 100 parts"},
		{"Resources: {A: {Type: T, Properties: {P: {Fn::Transform: " + include("s3://b/long") + "}, Q: {Fn::Transform: " + include("s3://b/long") +
			"}}}}", "Template may not exceed 1048576 bytes in size."},
		{"Parameters: {Fn::Transform: " + include("s3://b/queue.yml") + "}\n" + in("s3://b/queue.yml"),
			"Template format error: Parameter name Fn::Transform is non alphanumeric."},
	} {
		_, err := included(c.text)
		if err == nil || err.Error() != c.want {
			_, err2 := ParseFor([]byte(c.text), Scope{}, func(t *Template) (map[string]any, error) { return t.Values(nil) })
			if err != nil || err2 == nil || err2.Error() != c.want {
				t.Errorf("%.300s\n got %v, %v\nwant %s", c.text, err, err2, c.want)
			}
		}
	}
}

// TestIncludeDeclaration: what a template declares is known without what it includes.
func TestIncludeDeclaration(t *testing.T) {
	got, err := Parse([]byte("Parameters: {P: {Type: String}}\nResources: {A: {Type: T, Properties: {Fn::Transform: " + include("s3://b/queue.yml") + "}}}"))
	if err != nil || len(got.Parameters) != 1 || len(got.Resources) != 0 || len(got.Transforms) != 1 || got.Transforms[0] != IncludeTransform {
		t.Errorf("got %+v, %v", got, err)
	}
}
