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

// EC2's names of members differ from the SDK's, and those in requests differ from those in answers. The SDK has EC2's names only in
// the code that writes requests and reads answers.

// ec2Names returns the tables of names that don't follow the rule. By the rule, requests use the name of the SDK's field, and answers
// the same name with a lower-case first letter.
func ec2Names(service, []string) string {
	var b bytes.Buffer
	writeNames(&b, "modelInputNames", "requests", "serializers.go", "v", func(field string) string { return field })
	writeNames(&b, "modelNames", "answers", "deserializers.go", "sv", func(field string) string {
		r, n := utf8.DecodeRuneInString(field)
		return string(unicode.ToLower(r)) + field[n:]
	})
	writeItems(&b)
	return b.String()
}

// writeItems writes the places of the lists in answers whose elements aren't called item. The SDK skips elements whose names it doesn't
// expect.
func writeItems(b *bytes.Buffer) {
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
				if _, name := fieldAndName(c, ""); name != "item" {
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
	b.WriteString(
		"// modelPlaces names the elements of lists that aren't called item, by \"<Struct>.<Field>\".\nvar " +
			"modelPlaces = map[string]model.Place{\n",
	)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(b, "\t%q: {Item: %q},\n", key, found[key])
	}
	b.WriteString("}\n")
}

// writeNames writes a table of the names in a file's functions. Each function has a struct in the variable.
func writeNames(b *bytes.Buffer, table, of, file, variable string, rule func(string) string) {
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
			field, name := fieldAndName(n, variable)
			if field == "" || name == "" {
				return true
			}
			if name != rule(field) {
				found[owner+"."+field] = name
			}
			return false
		})
	}
	fmt.Fprintf(
		b,
		"// %s has the exceptions among the names of EC2's members in %s, by \"<Struct>.<Field>\".\nvar %s = map[string]string{\n",
		table, of, table,
	)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(b, "\t%q: %q,\n", key, found[key])
	}
	b.WriteString("}\n\n")
}

// structName returns the name of the struct that a type points to, or "" if it points to none.
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

// fieldAndName returns the variable's field that a statement or case uses, and the wire name in it.
func fieldAndName(n ast.Node, variable string) (field, name string) {
	switch n.(type) {
	case *ast.IfStmt, *ast.CaseClause, *ast.BlockStmt:
	default:
		return "", ""
	}
	if b, ok := n.(*ast.BlockStmt); ok && !writesKey(b) {
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

// writesKey reports whether a block begins by writing a member's name. Members that are always sent have such blocks.
func writesKey(b *ast.BlockStmt) bool {
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
