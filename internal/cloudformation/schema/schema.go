// Package schema checks a template's resources against CloudFormation's published schemas of resource types: whether AWS knows the type, its
// properties and their values. Pintle has no copy of them: they are read from what the user has fetched. It checks what a person mistakes
// (names, what is required, what can't be given, choices, shapes) and no more, so that what it says is certain: a function's value isn't
// known, numbers may be written as text, and rules that join properties are left to AWS. Besides the files that it reads it is pure.
//
// The files are at https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schemas.html
package schema

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/cloudformation/template"
)

// maxFile is how large a type's schema may be. The largest are some hundred kilobytes.
const maxFile = 16 << 20

// Schemas are types' schemas by the types' names.
type Schemas map[string]*Type

// Type is the schema of a type of resource.
type Type struct {
	node
	TypeName           string
	ReadOnlyProperties []string // as JSON pointers, such as /properties/Arn
	Definitions        map[string]*node
}

// node is the schema of a value.
type node struct {
	Ref                  string `json:"$ref"`
	Type                 any    // a name, or a list of names
	Properties           map[string]*node
	PatternProperties    map[string]*node
	AdditionalProperties any // false where the properties are all that there may be
	Required             []string
	Items                *node
	Enum                 []any
	OneOf, AnyOf, AllOf  []*node
}

// Open reads the schemas in a zip file, as AWS publishes them, or those in a folder.
func Open(file string) (Schemas, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return read(os.DirFS(file))
	}
	z, err := zip.OpenReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer z.Close() //nolint:errcheck // it was only read
	return read(z)
}

// read reads all schemas of a file system. Files that are something else are none.
func read(files fs.FS) (Schemas, error) {
	schemas := Schemas{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".json" {
			return err
		}
		f, err := files.Open(name)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was only read
		text, err := io.ReadAll(io.LimitReader(f, maxFile))
		if err != nil {
			return err
		}
		t := new(Type)
		if json.Unmarshal(text, t) == nil && t.TypeName != "" {
			schemas[t.TypeName] = t
		}
		return nil
	})
	if err == nil && len(schemas) == 0 {
		err = fmt.Errorf("there is no schema of a resource type in it")
	}
	return schemas, err
}

// Check says what is wrong with a resource, in the order of its properties.
func (s Schemas) Check(r *template.Resource) []string {
	if strings.HasPrefix(r.Type, "Custom::") {
		return nil
	}
	t := s[r.Type]
	if t == nil {
		return []string{"AWS has no type " + r.Type}
	}
	c := checker{definitions: t.Definitions}
	for _, f := range r.Properties.Each() {
		if slices.Contains(t.ReadOnlyProperties, "/properties/"+f.Name) {
			c.problems = append(c.problems, f.Name+" can only be read")
		}
	}
	c.object(&t.node, r.Properties, "")
	return c.problems
}

// checker gathers what is wrong with a resource.
type checker struct {
	definitions map[string]*node
	problems    []string
}

func (c *checker) add(at, format string, args ...any) {
	c.problems = append(c.problems, strings.TrimPrefix(at+": ", ": ")+fmt.Sprintf(format, args...))
}

// value checks a value, which is at a path.
func (c *checker) value(n *node, v *template.Value, at string) {
	if name, argument := v.Call(); name != "" {
		if name == "Fn::If" && argument.Kind == template.List && len(argument.Items) == 3 {
			c.value(n, argument.Items[1], at)
			c.value(n, argument.Items[2], at)
		}
		return
	}
	n = c.resolved(n)
	if n == nil || len(n.OneOf) > 0 || len(n.AnyOf) > 0 || len(n.AllOf) > 0 {
		return
	}
	switch {
	case v.Kind == template.Object && n.takes("object"):
		c.object(n, v, at)
	case v.Kind == template.List && n.takes("array"):
		for i, item := range v.Items {
			c.value(n.Items, item, fmt.Sprintf("%s[%d]", at, i))
		}
	case v.Kind == template.Object && !n.takes("string"): // a document may stand where its text is expected
		c.add(at, "is an object, and AWS expects %s", n.shape())
	case v.Kind == template.List:
		c.add(at, "is a list, and AWS expects %s", n.shape())
	case v.Kind != template.Null && v.Kind != template.Object:
		c.scalar(n, v, at)
	}
}

// scalar checks a string, a number or a Boolean. CloudFormation takes each for the others.
func (c *checker) scalar(n *node, v *template.Value, at string) {
	if !n.takes("string") && !n.takes("number") && !n.takes("integer") && !n.takes("boolean") {
		c.add(at, "is %q, and AWS expects %s", v.Text, n.shape())
		return
	}
	if len(n.Enum) == 0 {
		return
	}
	var choices []string
	for _, choice := range n.Enum {
		choices = append(choices, fmt.Sprint(choice))
	}
	if !slices.Contains(choices, v.Text) {
		c.add(at, "is %q, and AWS takes %s", v.Text, strings.Join(choices, ", "))
	}
}

// object checks an object's fields. What is required of one side of a condition isn't known.
func (c *checker) object(n *node, v *template.Value, at string) {
	closed := n.AdditionalProperties == false && len(n.PatternProperties) == 0
	for _, f := range v.Each() {
		where := strings.TrimPrefix(at+"."+f.Name, ".")
		p, known := n.Properties[f.Name]
		switch {
		case known:
			c.value(p, f.Value, where)
		case closed && !strings.HasPrefix(f.Name, "Fn::"):
			c.add(where, "AWS has no such property")
		}
	}
	for _, name := range n.Required {
		if v.Get(name) == nil && !slices.ContainsFunc(v.Each(), func(f template.Field) bool { return strings.HasPrefix(f.Name, "Fn::") }) {
			c.add(strings.TrimPrefix(at+"."+name, "."), "AWS requires it")
		}
	}
}

// resolved follows references to definitions. Those that lead nowhere, or in a circle, are nil.
func (c *checker) resolved(n *node) *node {
	for range 16 {
		if n == nil || n.Ref == "" {
			return n
		}
		n = c.definitions[strings.TrimPrefix(n.Ref, "#/definitions/")]
	}
	return nil
}

// takes reports whether values may be of a type. Where none is said, they may be of any.
func (n *node) takes(name string) bool {
	switch t := n.Type.(type) {
	case string:
		return t == name
	case []any:
		return slices.Contains(t, any(name))
	}
	return n.Properties == nil || name == "object"
}

// shape says what is expected, in words.
func (n *node) shape() string {
	switch {
	case n.takes("object"):
		return "an object"
	case n.takes("array"):
		return "a list"
	}
	return "a single value"
}
