package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// EC2 calls members by other names than the SDK does, and in requests by others than in answers. The
// SDK keeps these names in the code that writes requests and reads answers.

// ec2Names are the tables of the names that do not follow the rule: in requests that of the SDK's field, in
// answers the same with a small first letter.
func ec2Names(service, []string) string {
	var b bytes.Buffer
	names(&b, "modelInputNames", "requests", "serializers.go", "v", func(field string) string { return field })
	names(&b, "modelNames", "answers", "deserializers.go", "sv", func(field string) string {
		r, n := utf8.DecodeRuneInString(field)
		return string(unicode.ToLower(r)) + field[n:]
	})
	items(&b)
	return b.String()
}

// items writes the places of lists in answers whose elements are not called item. The SDK leaves out elements that
// are called otherwise than it expects.
func items(b *bytes.Buffer) {
	odd := map[string]string{} // by the function that reads the list
	for d := range declarations(sdk+"ec2", "deserializers.go") {
		f, ok := d.(*ast.FuncDecl)
		if !ok || len(f.Type.Params.List) == 0 {
			continue
		}
		p, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		if _, list := p.X.(*ast.ArrayType); !list {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if c, ok := n.(*ast.CaseClause); ok && len(c.List) == 1 {
				if _, name := member(c, ""); name != "item" {
					odd[f.Name.Name] = name
				}
			}
			return true
		})
	}
	found := map[string]string{}
	for d := range declarations(sdk+"ec2", "deserializers.go") {
		f, ok := d.(*ast.FuncDecl)
		if !ok || len(f.Type.Params.List) == 0 || structName(f.Type.Params.List[0].Type) == "" {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok || odd[fmt.Sprint(c.Fun)] == "" {
				return true
			}
			if list, ok := c.Args[0].(*ast.UnaryExpr); ok { // the address of the struct's field
				found[structName(f.Type.Params.List[0].Type)+"."+list.X.(*ast.SelectorExpr).Sel.Name] = odd[fmt.Sprint(c.Fun)]
			}
			return true
		})
	}
	b.WriteString("// modelPlaces are what the elements of lists are called that are not called item, by \"<Struct>.<Field>\".\nvar modelPlaces = map[string]model.Place{\n")
	for _, key := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(b, "\t%q: {Item: %q},\n", key, found[key])
	}
	b.WriteString("}\n")
}

// names writes a table of the names in a file's functions, each of which has a struct in a variable.
func names(b *bytes.Buffer, table, of, file, variable string, rule func(string) string) {
	found := map[string]string{}
	for d := range declarations(sdk+"ec2", file) {
		f, ok := d.(*ast.FuncDecl)
		if !ok || len(f.Type.Params.List) == 0 {
			continue
		}
		owner := structName(f.Type.Params.List[0].Type)
		if owner == "" {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			field, name := member(n, variable)
			if field == "" || name == "" {
				return true
			}
			if name != rule(field) {
				found[owner+"."+field] = name
			}
			return false
		})
	}
	fmt.Fprintf(b, "// %s are the names in %s of EC2's members, where they are exceptions, by \"<Struct>.<Field>\".\nvar %s = map[string]string{\n", table, of, table)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(b, "\t%q: %q,\n", key, found[key])
	}
	b.WriteString("}\n\n")
}

// structName is the struct that a type points to, "" where it is none.
func structName(t ast.Expr) string {
	p, ok := t.(*ast.StarExpr)
	if !ok {
		return ""
	}
	for ok {
		t = p.X
		p, ok = t.(*ast.StarExpr)
	}
	switch t := t.(type) {
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// member is the field of the variable that a statement or a case is about, and the name in it.
func member(n ast.Node, variable string) (field, name string) {
	switch n.(type) {
	case *ast.IfStmt, *ast.CaseClause, *ast.BlockStmt:
	default:
		return "", ""
	}
	if b, ok := n.(*ast.BlockStmt); ok && !keyed(b) {
		return "", ""
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == variable && field == "" {
				field = n.Sel.Name
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && name == "" {
				name, _ = strconv.Unquote(n.Value)
			}
		}
		return true
	})
	return field, name
}

// keyed reports whether a block begins with a member's name: that of a member that is always sent.
func keyed(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	a, ok := b.List[0].(*ast.AssignStmt)
	if !ok {
		return false
	}
	call, ok := a.Rhs[0].(*ast.CallExpr)
	return ok && strings.HasSuffix(fmt.Sprint(call.Fun), "Key}")
}
