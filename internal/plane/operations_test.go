package plane

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/awsname"
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

// TestServicesAtAWSNames: who stands in for AWS answers for each service that there is, and for no other.
func TestServicesAtAWSNames(t *testing.T) {
	p := &Plane{}
	p.buildServices()
	var have []string
	for _, api := range apis(p.services()) {
		have = append(have, api.Name)
	}
	want := awsname.Services()
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the services are %v, awsname has %v", have, want)
	}
}
