package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

const house = "github.com/pintle/pintle/internal/"

// writeOperations writes the table of the operations that our service implements. The
// compiler checks the methods' shapes there, and the linker can drop what the table does not name.
func (s service) writeOperations(all []string) {
	methods := map[string]string{} // by operation
	for d := range declarations(house+s.folder, "*.go") {
		name, operation := method(d)
		if slices.Contains(all, operation) && (methods[operation] == "" || name != operation) {
			methods[operation] = name
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "import \"%swire/call\"\n\n// Operations are the operations that are implemented.\n", house)
	b.WriteString("func (s *Service) Operations() []call.Operation {\n\treturn []call.Operation{\n")
	for _, operation := range all {
		if name := methods[operation]; name != "" {
			fmt.Fprintf(&b, "\t\tcall.Op(%q, s.%s),\n", operation, name)
		}
	}
	b.WriteString("\t}\n}\n")
	s.write("operations_gen.go", b.String())
}

// method is a declaration that answers an operation: a method of the Service that has its name, and its input. One with
// Rows behind a name that is not exported goes before it: it answers with rows as the state holds them.
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
