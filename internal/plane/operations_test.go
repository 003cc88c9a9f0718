package plane

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestEveryMethodIsInItsTable fails if an operation was added or removed without go generate.
func TestEveryMethodIsInItsTable(t *testing.T) {
	p := &Plane{}
	p.buildServices()
	for _, api := range apis(p.services()) {
		typ := reflect.TypeOf(api.Service)
		var methods []string
		for i := range typ.NumMethod() {
			m := typ.Method(i)
			if m.Type.NumIn() == 3 && strings.HasSuffix(m.Type.In(2).String(), "."+m.Name+"Input") {
				methods = append(methods, m.Name)
			}
		}
		var table []string
		for _, o := range api.Service.Operations() {
			table = append(table, o.Name)
		}
		if len(methods) == 0 || !slices.Equal(methods, table) {
			t.Errorf("%s has the operations %v, in its table are %v: run go generate ./internal/wire", typ, methods, table)
		}
	}
}
