package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDepth is how deep a template's values may be nested. CloudFormation has such a bound too, without saying where.
const maxDepth = 100

// parseText parses a template's text: JSON if it begins with a brace, else YAML.
func parseText(text []byte) (*Value, error) {
	if body := bytes.TrimLeft(text, " \t\r\n\ufeff"); len(body) > 0 && body[0] == '{' {
		return parseJSON(text)
	}
	return parseYAML(text)
}

// yamlLine finds the line in a message of the YAML library, which has no other way to tell it.
var yamlLine = regexp.MustCompile(`line (\d+)`)

func parseYAML(text []byte) (*Value, error) {
	var doc yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, malformed("unsupported structure.") // nothing
	} else if err != nil {
		line := 1
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1]) //nolint:errcheck // these are digits
		}
		return nil, malformed("YAML not well-formed. (line %d, column 1)", line)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, malformed("unsupported structure.") // a second document
	}
	return fromYAML(doc.Content[0], 0)
}

// fromYAML makes a value of a node of YAML.
func fromYAML(n *yaml.Node, depth int) (*Value, error) {
	switch {
	case depth > maxDepth:
		return nil, malformed("values are nested deeper than %d levels (line %d, column %d)", maxDepth, n.Line, n.Column)
	case n.Kind == yaml.AliasNode:
		return nil, wrong("YAML aliases are not allowed in CloudFormation templates")
	}
	v, err := untagged(n, depth)
	if err != nil || !isShortForm(n) {
		return v, err
	}
	call := longForm(n.Tag[1:], v)
	if call == nil {
		return nil, malformed("YAML not well-formed. (line %d, column %d)", n.Line, n.Column)
	}
	return call, nil
}

// isShortForm reports whether a node has a tag of its own, as functions' short forms do.
func isShortForm(n *yaml.Node) bool {
	return strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!")
}

// untagged makes a value of a node without regard to a function's short form.
func untagged(n *yaml.Node, depth int) (*Value, error) {
	v := new(Value)
	switch n.Kind {
	case yaml.MappingNode:
		object := objectBuilder{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
				return nil, malformed("YAML not well-formed. (line %d, column %d)", key.Line, key.Column)
			}
			field, err := fromYAML(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			if key.Value == "Fn::GetAtt" {
				field = dotted(field)
			}
			object.set(key.Value, field)
		}
		return object.done(), nil
	case yaml.SequenceNode:
		v.Kind = List
		for _, item := range n.Content {
			i, err := fromYAML(item, depth+1)
			if err != nil {
				return nil, err
			}
			v.Items = append(v.Items, i)
		}
	default:
		v.Kind, v.Text = scalar(n)
	}
	return v, nil
}

// scalar reads a scalar as YAML 1.1 has it, which is CloudFormation's. Dates are left strings, as policies' versions need.
func scalar(n *yaml.Node) (Kind, string) {
	if quoted := yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle; n.Style&quoted != 0 || isShortForm(n) {
		return String, n.Value
	}
	switch n.Tag {
	case "!!null":
		return Null, ""
	case "!!int", "!!float":
		return Number, n.Value
	}
	switch n.Value {
	case "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON":
		return Bool, "true"
	case "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF":
		return Bool, "false"
	}
	return String, n.Value
}

// longForm returns the function whose short form was written, or nil if there is none: !Sub X is {Fn::Sub: X}.
func longForm(tag string, argument *Value) *Value {
	name := "Fn::" + tag
	switch tag {
	case "Ref", "Condition":
		name = tag
	case "GetAtt":
		argument = dotted(argument)
	}
	if !functions[name] && !ruleFunctions[name] && name != "Condition" && name != "Fn::Transform" {
		return nil
	}
	return &Value{Kind: Object, Fields: []Field{{name, argument}}}
}

// dotted makes the list of Fn::GetAtt of "Resource.Attribute". An attribute may have dots of its own.
func dotted(v *Value) *Value {
	if !v.isScalar() {
		return v
	}
	resource, attribute, found := strings.Cut(v.Text, ".")
	if !found {
		return v
	}
	return &Value{Kind: List, Items: []*Value{{Kind: String, Text: resource}, {Kind: String, Text: attribute}}}
}

// objectBuilder gathers an object's fields. Of two with one name the last counts, as CloudFormation has it.
type objectBuilder struct {
	fields []Field
	index  map[string]int
}

func (b *objectBuilder) set(name string, to *Value) {
	if i, there := b.index[name]; there {
		b.fields[i].Value = to
		return
	}
	if b.index == nil {
		b.index = map[string]int{}
	}
	b.index[name] = len(b.fields)
	b.fields = append(b.fields, Field{name, to})
}

func (b *objectBuilder) done() *Value { return &Value{Kind: Object, Fields: b.fields} }

// jsonParser reads JSON.
type jsonParser struct {
	text    []byte
	decoder *json.Decoder
}

func parseJSON(text []byte) (*Value, error) {
	p := &jsonParser{text, json.NewDecoder(bytes.NewReader(text))}
	p.decoder.UseNumber()
	v, err := p.value(0)
	if err == nil {
		if _, end := p.decoder.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("something follows")
		}
	}
	if e := (*Error)(nil); err != nil && !errors.As(err, &e) {
		return nil, malformed("JSON not well-formed. %s", p.at(1)) // behind the character that is wrong
	}
	return v, err
}

// at returns where the decoder is, or some characters further, as messages have it.
func (p *jsonParser) at(further int) string {
	read := p.text[:min(int(p.decoder.InputOffset())+further, len(p.text))]
	return fmt.Sprintf("(line %d, column %d)", bytes.Count(read, []byte{'\n'})+1, len(read)-bytes.LastIndexByte(read, '\n'))
}

func (p *jsonParser) value(depth int) (*Value, error) {
	if depth > maxDepth {
		return nil, malformed("values are nested deeper than %d levels %s", maxDepth, p.at(0))
	}
	token, err := p.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case bool:
		return &Value{Kind: Bool, Text: strconv.FormatBool(t)}, nil
	case json.Number:
		return &Value{Kind: Number, Text: t.String()}, nil
	case string:
		return &Value{Kind: String, Text: t}, nil
	case json.Delim:
		if t == '{' {
			return p.object(depth)
		}
		return p.list(depth)
	}
	return &Value{Kind: Null}, nil
}

func (p *jsonParser) object(depth int) (*Value, error) {
	object := objectBuilder{}
	for p.decoder.More() {
		name, err := p.decoder.Token()
		if err != nil {
			return nil, err
		}
		field, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		object.set(name.(string), field) // the decoder takes nothing else for a name
	}
	_, err := p.decoder.Token() // the brace
	return object.done(), err
}

func (p *jsonParser) list(depth int) (*Value, error) {
	v := &Value{Kind: List}
	for p.decoder.More() {
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.Items = append(v.Items, item)
	}
	_, err := p.decoder.Token() // the bracket
	return v, err
}
