package schema

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pintle/pintle/internal/cloudformation/template"
)

// published are schemas as AWS publishes them, of types that there aren't.
var published = fstest.MapFS{
	"README.md":  {Data: []byte("not a schema")},
	"other.json": {Data: []byte(`{"openapi": "3.0"}`)},
	"shelf.json": {Data: []byte(`{
		"typeName": "AWS::Shop::Shelf",
		"definitions": {
			"Board": {"type": "object", "additionalProperties": false, "required": ["Width"],
				"properties": {"Width": {"type": "integer"}, "Wood": {"type": "string", "enum": ["oak", "pine"]}, "Above": {"$ref": "#/definitions/Board"}}},
			"Round": {"$ref": "#/definitions/Round"}
		},
		"properties": {
			"Arn": {"type": "string"}, "Boards": {"type": "array", "items": {"$ref": "#/definitions/Board"}}, "Round": {"$ref": "#/definitions/Round"},
			"Plan": {"type": ["object", "string"]}, "Tags": {"type": "object", "patternProperties": {".*": {"type": "string"}}, "additionalProperties": false},
			"Place": {"oneOf": [{"required": ["Left"]}, {"required": ["Right"]}]}
		},
		"additionalProperties": false, "required": ["Boards"], "readOnlyProperties": ["/properties/Arn"]
	}`)},
}

func TestCheck(t *testing.T) {
	schemas, err := read(published)
	if err != nil {
		t.Fatal(err)
	}
	for properties, want := range map[string]string{
		`{Boards: [{Width: 3, Wood: oak}]}`:                             "",
		`{Boards: [{Width: "3", Above: {Width: 2, Wood: !Ref Wood}}]}`:  "",
		`{Boards: !Ref Wood}`:                                           "",
		`{Boards: [], Plan: {a: b}, Tags: {any: thing}, Place: {x: y}}`: "",
		`{Boards: [], Plan: text, Round: {any: thing}}`:                 "",
		`{}`:                      "Boards: AWS requires it",
		`{Boards: [{Wood: elm}]}`: `Boards[0].Wood: is "elm", and AWS takes oak, pine; Boards[0].Width: AWS requires it`,
		`{Boards: [{Width: 1, Above: {Width: [], Depth: 4}}]}`: "Boards[0].Above.Width: is a list, and AWS expects a single value; Boards[0].Above.Depth: AWS has no such property",
		`{Boards: two}`:             `Boards: is "two", and AWS expects a list`,
		`{Boards: {a: b}}`:          "Boards: is an object, and AWS expects a list",
		`{Boards: [one]}`:           `Boards[0]: is "one", and AWS expects an object`,
		`{Boards: [], Arn: x}`:      "Arn can only be read",
		`{Boards: [], Colour: red}`: "Colour: AWS has no such property",
		`{Boards: !If [Big, [{Width: 1}], [{Width: 1, Wood: elm}]]}`:                 `Boards[0].Wood: is "elm", and AWS takes oak, pine`,
		`{Boards: [!If [Big, {Width: 1}, !Ref AWS::NoValue], {Depth: 1, Width: 1}]}`: "Boards[1].Depth: AWS has no such property",
	} {
		tpl, err := template.Parse([]byte("Parameters: {Wood: {Type: String}}\nConditions: {Big: !Equals [!Ref Wood, oak]}\n" +
			"Resources: {Shelf: {Type: AWS::Shop::Shelf, Properties: " + properties + "}}"))
		if err != nil {
			t.Fatalf("%s: %v", properties, err)
		}
		if got := strings.Join(schemas.Check(&tpl.Resources[0]), "; "); got != want {
			t.Errorf("%s\n got %s\nwant %s", properties, got, want)
		}
	}
}

func TestTypesThatAWSDoesNotHave(t *testing.T) {
	schemas, err := read(published)
	if err != nil {
		t.Fatal(err)
	}
	if got := schemas.Check(&template.Resource{Type: "AWS::Shop::Till"}); !slices.Equal(got, []string{"AWS has no type AWS::Shop::Till"}) {
		t.Error(got)
	}
	if got := schemas.Check(&template.Resource{Type: "Custom::Till"}); got != nil {
		t.Error(got)
	}
	if _, err := read(fstest.MapFS{"other.json": published["other.json"]}); err == nil {
		t.Error("a folder without schemas is taken")
	}
}
