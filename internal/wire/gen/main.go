// Command gen reads the SDK's packages and writes what reflection cannot find in them: the names of
// every operation of the services that Pintle speaks, so that the server can tell an operation that
// it lacks from one that there is not, the variants of their unions, EC2's names of members, what SQS's
// members are called in Query, for REST-XML where members are, and what AWS's models say of lengths, ranges and patterns.
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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const sdk = "github.com/aws/aws-sdk-go-v2/service/"

// services are those that Pintle speaks, by the SDK's package; the folder is ours, under internal.
var services = []struct {
	pkg, name, title, folder string

	query bool // whether it is spoken in Query alone
}{
	{"ecs", "ECS", "Amazon ECS", "ecs", false},
	{"cloudwatchlogs", "Logs", "CloudWatch Logs", "logs", false},
	{"sts", "STS", "AWS STS", "iam/sts", true},
	{"cloudwatch", "CloudWatch", "Amazon CloudWatch", "cloudwatch", false},
	{"applicationautoscaling", "ApplicationAutoScaling", "Application Auto Scaling", "appautoscaling", false},
	{"autoscaling", "AutoScaling", "EC2 Auto Scaling", "autoscaling", true},
	{"ec2", "EC2", "Amazon EC2", "ec2", false},
	{"sqs", "SQS", "Amazon SQS", "sqs", false},
	{"s3", "S3", "Amazon S3", "s3", false},
}

func main() {
	var imports, body bytes.Buffer
	for _, s := range services {
		operations := find(sdk+s.pkg, operation)
		writeOperations(s.folder, s.title, operations)
		fmt.Fprintf(&body, "\n// %sOperations is every operation of %s.\nvar %sOperations = []string{\n", s.name, s.title, s.name)
		for _, name := range operations {
			fmt.Fprintf(&body, "\t%q,\n", name)
		}
		body.WriteString("}\n")
		if s.name == "SQS" {
			body.WriteString(formNames(s.name, sdk+s.pkg+"/schemas"))
		}
		if s.query {
			body.WriteString(statuses(s.pkg, s.name, s.title))
		}
		if s.pkg == "s3" { // its structs do not tell how it is spoken
			rest(s.pkg, s.name, operations)
		}
		variants := find(sdk+s.pkg+"/types", variant)
		if len(variants) == 0 {
			continue
		}
		fmt.Fprintf(&imports, "\t%stypes %q\n", s.pkg, sdk+s.pkg+"/types")
		fmt.Fprintf(&body, "\n// %sUnions is a variant each of the unions of %s.\nvar %sUnions = []any{\n", s.name, s.title, s.name)
		for _, name := range variants {
			fmt.Fprintf(&body, "\t&%stypes.%s{},\n", s.pkg, name)
		}
		body.WriteString("}\n")
	}
	write("model/operations_gen.go", "model", fmt.Sprintf("import (\n%s)\n%s", &imports, &body))
	writeEC2()
	writeConstraints()
}

// operation is the name of a declaration that is an operation: a method of the client that has an
// input named after it.
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

// variant is the name of a declaration that is a union's variant. The SDK calls it <Union>Member<Name>
// and says in a method that it is one.
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

// find returns the names of a package's declarations that are what is looked for.
func find(pkg string, is func(ast.Decl) string) []string {
	var names []string
	for d := range declarations(pkg, "*.go") {
		if name := is(d); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names) // a wrapper for some platforms is declared beside the client
}

// declarations are those in a package's files.
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

// parse reads a package's files.
func parse(pkg, pattern string) (files []*ast.File) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
	check(err)
	paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), pattern))
	check(err)
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		check(err)
		files = append(files, file)
	}
	return files
}

// formNames is the table of what Query calls members, and the keys and values of maps, where the SDK's schemas
// say that they are flat.
func formNames(service, pkg string) string {
	type added struct{ structure, member, target, name string }
	var members []added
	for _, file := range parse(pkg, "*.go") {
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
		if a.name == "" || strings.HasPrefix(a.structure, "_") { // what is behind those is a list or a map
			continue
		}
		structure := a.structure
		if name, ok := strings.CutSuffix(structure, "Request"); ok {
			structure = name + "Input"
		} else if name, ok := strings.CutSuffix(structure, "Result"); ok {
			structure = name + "Output"
		}
		field := strings.ToUpper(a.member[:1]) + a.member[1:]
		lines = append(lines, fmt.Sprintf("\t%q: {%q, %q, %q},\n", structure+"."+field, a.name, entries[a.target+".key"], entries[a.target+".value"]))
	}
	slices.Sort(lines)
	return fmt.Sprintf("\n// %sFormNames is what Query calls members that it has flat.\nvar %sFormNames = map[string]FormName{\n%s}\n", service, service, strings.Join(lines, ""))
}

func text(e ast.Expr) string {
	s, err := strconv.Unquote(e.(*ast.BasicLit).Value)
	check(err)
	return s
}

func write(path, pkg, source string) {
	b, err := format.Source([]byte("// Code generated by internal/wire/gen. DO NOT EDIT.\n\npackage " + pkg + "\n\n" + source))
	check(err)
	check(os.WriteFile(path, b, 0o644))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
