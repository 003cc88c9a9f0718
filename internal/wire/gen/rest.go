package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// model is what a service's model says about HTTP. The model is botocore's, which comes with the AWS CLI. Gen takes only names from it.
type model struct {
	Operations map[string]modelled
	Shapes     map[string]shape
}

// modelled is what a model says of an operation.
type modelled struct {
	HTTP struct {
		Method       string
		RequestURI   string `json:"requestUri"`
		ResponseCode int
	}
	Input, Output struct{ Shape string }
}

type shape struct {
	Type      string
	Members   map[string]ref
	Required  []string
	Payload   string
	Member    ref
	Flattened bool
	Exception bool
	Error     struct {
		Code           string
		HTTPStatusCode int `json:"httpStatusCode"`
	}
}

type ref struct {
	Shape        string
	Location     string
	LocationName string
	XMLAttribute bool `json:"xmlAttribute"`
	Flattened    bool
}

// restPlaces returns the tables of a REST-XML service's routes and its members' places.
func restPlaces(sv service, operations []string) string {
	m := loadModel(sv.pkg)
	var routes, members bytes.Buffer
	structs := map[string]string{} // by shape, the Go structs of inputs and outputs
	for _, operation := range operations {
		o, ok := m.Operations[operation]
		if !ok {
			fmt.Fprintln(os.Stderr, "botocore has no", operation)
			continue
		}
		structs[o.Input.Shape] = operation + "Input"
		structs[o.Output.Shape] = operation + "Output"
		r := m.route(o)
		if r.headers != nil && !slices.ContainsFunc(operations, func(other string) bool { return other != operation && m.route(m.Operations[other]).isLike(r) }) {
			r.headers = nil // the operation says that one is missing
		}
		fmt.Fprintf(
			&routes, "\t{Operation: %q, Method: %q, Path: %q, Query: %#v, Headers: %#v, Status: %d},\n", operation, r.method, r.path,
			r.query, r.headers, max(o.HTTP.ResponseCode, 200),
		)
	}
	for _, shapeName := range slices.Sorted(maps.Keys(m.Shapes)) {
		s := m.Shapes[shapeName]
		if s.Type != "structure" {
			continue
		}
		for _, member := range slices.Sorted(maps.Keys(s.Members)) {
			place := m.place(s, member)
			field := "." + strings.ToUpper(member[:1]) + member[1:]
			name := structs[shapeName]
			if place != "" && name != shapeName && !strings.HasSuffix(shapeName, "Request") { // an output may also be a type
				fmt.Fprintf(&members, "\t%q: %s,\n", shapeName+field, place)
			}
			if name == "" {
				continue
			}
			if place == "" { // in inputs and outputs, no place means that the model lacks the member
				place = fmt.Sprintf("{Name: %q}", member)
			}
			fmt.Fprintf(&members, "\t%q: %s,\n", name+field, place)
		}
	}
	return fmt.Sprintf("// modelRoutes tells how requests look, by operation.\n"+
		"var modelRoutes = []model.Route{\n%s}\n\n"+
		"// modelPlaces tells where members are that aren't XML elements of their own name.\n"+
		"var modelPlaces = map[string]model.Place{\n%s}\n",
		&routes, &members)
}

// route is what tells an operation from others.
type route struct {
	method, path   string
	query, headers []string
}

func (m *model) route(o modelled) route {
	path, query, _ := strings.Cut(o.HTTP.RequestURI, "?")
	r := route{method: o.HTTP.Method, path: path, query: strings.FieldsFunc(query, func(r rune) bool { return r == '&' })}
	input := m.Shapes[o.Input.Shape]
	for _, member := range input.Required {
		switch in := input.Members[member]; in.Location {
		case "querystring":
			r.query = append(r.query, in.LocationName)
		case "header":
			r.headers = append(r.headers, in.LocationName)
		}
	}
	return r
}

// isLike reports whether nothing but headers tells two apart.
func (r route) isLike(other route) bool {
	return r.method == other.method && r.path == other.path && slices.Equal(r.query, other.query)
}

// statuses returns the table of a Query service's errors whose HTTP status isn't 400. The SDK's packages don't have the statuses.
func statuses(sv service, _ []string) string {
	table := map[string]int{}
	for shapeName, s := range loadModel(cmp.Or(sv.constraints, sv.pkg)).Shapes {
		if s.Exception && s.Error.HTTPStatusCode != 0 && s.Error.HTTPStatusCode != 400 {
			table[cmp.Or(s.Error.Code, shapeName)] = s.Error.HTTPStatusCode
		}
	}
	var b strings.Builder
	b.WriteString("// modelStatuses has the HTTP statuses of errors other than 400.\nvar modelStatuses = map[string]int{\n")
	for _, code := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(&b, "\t%q: %d,\n", code, table[code])
	}
	b.WriteString("}\n")
	return b.String()
}

// place returns a member's Place as Go source, or "" if the member is simply an element with its own name.
func (m *model) place(s shape, name string) string {
	r := s.Members[name]
	target := m.Shapes[r.Shape]
	as := r.LocationName
	if as == "" {
		as = name
	}
	switch {
	case s.Payload == name:
		return fmt.Sprintf("{In: model.InPayload, Name: %q}", as)
	case r.Location == "uri":
		return fmt.Sprintf("{In: model.InPath, Name: %q}", as)
	case r.Location == "querystring":
		return fmt.Sprintf("{In: model.InQuery, Name: %q}", as)
	case r.Location == "header":
		return fmt.Sprintf("{In: model.InHeader, Name: %q}", as)
	case r.Location == "headers":
		return fmt.Sprintf("{In: model.InHeaders, Name: %q}", as)
	case r.XMLAttribute:
		return fmt.Sprintf("{In: model.InAttribute, Name: %q}", as)
	case target.Type == "list" && (target.Flattened || r.Flattened):
		return fmt.Sprintf("{Name: %q}", as)
	case target.Type == "list":
		item := target.Member.LocationName
		if item == "" {
			item = "member"
		}
		return fmt.Sprintf("{Name: %q, Item: %q}", as, item)
	case as != name:
		return fmt.Sprintf("{Name: %q}", as)
	}
	return ""
}

func loadModel(pkg string) *model {
	m := new(model)
	check(readModel(pkg, m))
	return m
}

// readModel reads botocore's newest model of a service, as far as into has fields.
func readModel(service string, into any) error {
	dir, err := exec.Command("python3", "-c", "import botocore; print(botocore.__path__[0])").Output()
	if err != nil {
		return fmt.Errorf("find botocore: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "data", service, "*", "service-2.json.gz"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("botocore has no model of %s: %w", service, err)
	}
	f, err := os.Open(files[len(files)-1])
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // the file was only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	return json.NewDecoder(z).Decode(into)
}

// restAndStatuses writes both tables.
func restAndStatuses(sv service, operations []string) string {
	return restPlaces(sv, operations) + statuses(sv, operations)
}
