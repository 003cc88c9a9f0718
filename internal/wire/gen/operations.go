package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

const house = "github.com/pintle/pintle/internal/"

// writeOperations writes the table of the operations that our service implements. There the compiler checks the methods' types. The
// linker can drop the methods that the table doesn't name.
func (s service) writeOperations(all []string) {
	methods := map[string]string{} // by operation
	for d := range declarations(house+s.folder, "*.go") {
		name, operation := method(d)
		if slices.Contains(all, operation) && (methods[operation] == "" || name != operation) {
			methods[operation] = name
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "import \"%swire/call\"\n\n// Operations returns the implemented operations.\n", house)
	b.WriteString("func (s *Service) Operations() []call.Operation {\n\treturn []call.Operation{\n")
	for _, operation := range all {
		if name := methods[operation]; name != "" {
			fmt.Fprintf(&b, "\t\tcall.Op(%q, s.%s),\n", operation, name)
		}
	}
	b.WriteString("\t}\n}\n")
	s.write("operations_gen.go", b.String())
}

// method returns the name of a method that implements an operation, and the operation. Such a method of Service has the operation's
// name and input. An unexported one with the suffix Rows takes precedence, because it answers with the state's own rows.
func method(d ast.Decl) (name, operation string) {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv == nil || structName(f.Recv.List[0].Type) != "Service" || len(f.Type.Params.List) != 2 {
		return "", ""
	}
	operation, ok = strings.CutSuffix(structName(f.Type.Params.List[1].Type), "Input")
	if !ok || f.Name.Name != operation && f.Name.Name != strings.ToLower(operation[:1])+operation[1:]+"Rows" {
		return "", ""
	}
	return f.Name.Name, operation
}
