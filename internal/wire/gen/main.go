// Command gen writes what reflection can't find in the SDK's structs into each service's folder. It reads the SDK's packages and
// botocore's models.
//
// operations_gen.go is the table of implemented operations. model_gen.go has the tables that api.go refers to. They list all
// operations, so that the server can tell a missing operation from one that AWS doesn't have. They also have the variants of unions,
// irregular names of members, and, for REST, where members go. constraints.txt has the models' lengths, ranges and patterns.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"iter"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const sdk = "github.com/aws/aws-sdk-go-v2/service/"

// service is an AWS service that Pintle serves.
type service struct {
	pkg    string // the SDK's
	folder string // ours, under internal

	constraints string                                      // botocore's folder with the model for checking inputs; "" for no checks
	tables      func(s service, operations []string) string // writes more tables than operations and unions; may be nil
}

// services lists all services. To add one, add an entry.
var services = []service{
	{pkg: "ecs", folder: "ecs"},
	{pkg: "cloudwatchlogs", folder: "logs", constraints: "logs"},
	{pkg: "iam", folder: "iam", constraints: "iam", tables: statuses},
	{pkg: "sts", folder: "iam/sts", constraints: "sts", tables: statuses},
	{pkg: "cloudwatch", folder: "cloudwatch", constraints: "cloudwatch"},
	{pkg: "applicationautoscaling", folder: "appautoscaling", constraints: "application-autoscaling"},
	{pkg: "autoscaling", folder: "autoscaling", constraints: "autoscaling", tables: statuses},
	{pkg: "ec2", folder: "ec2", tables: ec2Names},
	{pkg: "sqs", folder: "sqs", tables: formNames},
	{pkg: "ssm", folder: "ssm", constraints: "ssm"},
	{pkg: "secretsmanager", folder: "secretsmanager", constraints: "secretsmanager"},
	{pkg: "ecr", folder: "ecr", constraints: "ecr"},
	{pkg: "efs", folder: "efs", constraints: "efs", tables: restAndStatuses},
	{pkg: "acm", folder: "acm", constraints: "acm"},
	{pkg: "elasticloadbalancingv2", folder: "elb", constraints: "elbv2", tables: statuses},
	{pkg: "s3", folder: "s3", tables: restPlaces},
	{pkg: "cloudformation", folder: "cloudformation", constraints: "cloudformation", tables: statuses},
	{pkg: "sns", folder: "sns", constraints: "sns", tables: statuses},
	{pkg: "servicediscovery", folder: "servicediscovery", constraints: "servicediscovery"},
	{pkg: "eventbridge", folder: "events", constraints: "events"},
	{pkg: "scheduler", folder: "schedules", constraints: "scheduler", tables: restAndStatuses},
	{pkg: "cloudcontrol", folder: "cloudformation/cloudcontrol", constraints: "cloudcontrol"},
}

func main() {
	for _, s := range services {
		operations := find(sdk+s.pkg, operation)
		s.writeOperations(operations)
		s.writeModel(operations)
		if s.constraints != "" {
			s.writeConstraints()
		}
	}
}

// writeModel writes the tables that the service's api.go refers to.
func (s service) writeModel(operations []string) {
	var imports, body bytes.Buffer
	if s.constraints != "" {
		imports.WriteString("\t_ \"embed\"\n\n")
		body.WriteString(
			"\n// modelConstraints are what the model says of inputs.\n//\n//go:embed constraints.txt\nvar modelConstraints string\n",
		)
	}
	body.WriteString("\n// modelOperations lists all operations of the service.\nvar modelOperations = []string{\n")
	for _, name := range operations {
		fmt.Fprintf(&body, "\t%q,\n", name)
	}
	body.WriteString("}\n")
	if variants := find(sdk+s.pkg+"/types", variant); len(variants) > 0 {
		fmt.Fprintf(&imports, "\t%q\n", sdk+s.pkg+"/types")
		body.WriteString("\n// modelUnions has one variant of each of the service's unions.\nvar modelUnions = []any{\n")
		for _, name := range variants {
			fmt.Fprintf(&body, "\t&types.%s{},\n", name)
		}
		body.WriteString("}\n")
	}
	if s.tables != nil {
		body.WriteString("\n" + s.tables(s, operations))
	}
	source := body.String()
	if strings.Contains(source, "model.") {
		fmt.Fprintf(&imports, "\n\t%q\n", house+"wire/model")
	}
	if imports.Len() > 0 {
		source = fmt.Sprintf("import (\n%s)\n%s", &imports, source)
	}
	s.write("model_gen.go", source)
}

// operation returns the name of an operation's declaration, and "" for any other. An operation is a method of the client with an input
// that is named after it.
func operation(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv == nil || len(f.Type.Params.List) < 2 {
		return ""
	}
	in, ok := f.Type.Params.List[1].Type.(*ast.StarExpr)
	if !ok || fmt.Sprint(in.X) != f.Name.Name+"Input" {
		return ""
	}
	return f.Name.Name
}

// variant returns the name of a union's variant for the declaration that marks it, and "" for any other. The SDK calls a variant
// <Union>Member<Name>, and marks it with a method.
func variant(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv == nil {
		return ""
	}
	receiver, ok := f.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return ""
	}
	name := fmt.Sprint(receiver.X)
	union, isUnion := strings.CutPrefix(f.Name.Name, "is")
	if !isUnion || !strings.HasPrefix(name, union+"Member") {
		return ""
	}
	return name
}

// find returns the names that nameOf returns for a package's declarations, sorted.
func find(pkg string, nameOf func(ast.Decl) string) []string {
	var names []string
	for d := range declarations(pkg, "*.go") {
		if name := nameOf(d); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names) // a wrapper beside the client, for some platforms, declares names again
}

// declarations returns the declarations in a package's files.
func declarations(pkg, pattern string) iter.Seq[ast.Decl] {
	return func(yield func(ast.Decl) bool) {
		for _, file := range parse(pkg, pattern) {
			for _, d := range file.Decls {
				if !yield(d) {
					return
				}
			}
		}
	}
}

// parse parses a package's files.
func parse(pkg, pattern string) (files []*ast.File) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
	check(err)
	paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), pattern))
	check(err)
	for _, name := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		check(err)
		files = append(files, file)
	}
	return files
}

// formNames returns the table of Query's names for flattened members, and for the keys and values of flattened maps, from the SDK's
// schemas.
func formNames(s service, _ []string) string {
	type added struct {
		structure string
		member    string
		target    string
		name      string
	}
	var members []added
	for _, file := range parse(sdk+s.pkg+"/schemas", "*.go") {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "AddMember" {
				a := added{structure: fmt.Sprint(f.X), member: text(call.Args[0]), target: fmt.Sprint(call.Args[1])}
				for _, trait := range call.Args[2:] {
					if t := trait.(*ast.UnaryExpr).X.(*ast.CompositeLit); t.Type.(*ast.SelectorExpr).Sel.Name == "XMLName" {
						a.name = text(t.Elts[0].(*ast.KeyValueExpr).Value)
					}
				}
				members = append(members, a)
			}
			return true
		})
	}
	entries := map[string]string{}
	for _, a := range members {
		entries[a.structure+"."+a.member] = a.name
	}
	var lines []string
	for _, a := range members {
		if a.name == "" || strings.HasPrefix(a.structure, "_") { // those with an underscore are lists and maps
			continue
		}
		structure := a.structure
		if name, ok := strings.CutSuffix(structure, "Request"); ok {
			structure = name + "Input"
		} else if name, ok := strings.CutSuffix(structure, "Result"); ok {
			structure = name + "Output"
		}
		field := strings.ToUpper(a.member[:1]) + a.member[1:]
		key := entries[a.target+".key"]
		value := entries[a.target+".value"]
		lines = append(lines, fmt.Sprintf("\t%q: {Name: %q, Key: %q, Value: %q},\n", structure+"."+field, a.name, key, value))
	}
	slices.Sort(lines)
	return "// modelFormNames has the names of flattened members in Query.\nvar modelFormNames = map[string]model.FormName{\n" +
		strings.Join(lines, "") + "}\n"
}

func text(e ast.Expr) string {
	s, err := strconv.Unquote(e.(*ast.BasicLit).Value)
	check(err)
	return s
}

// write writes a Go file into the service's folder.
func (s service) write(file, source string) {
	b, err := format.Source([]byte(
		"// Code generated by internal/wire/gen. DO NOT EDIT.\n\npackage " + path.Base(s.folder) + "\n\n" + source,
	))
	check(err)
	check(os.WriteFile(s.path(file), b, 0o644))
}

// path returns the path of a file in the service's folder, relative to wire's folder.
func (s service) path(file string) string { return filepath.Join("..", s.folder, file) }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
