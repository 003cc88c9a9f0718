package plane

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/iam/authorize"
)

// withoutCall are permissions that no call of the API asks for, by service: to pull an image that a cache rule has come from elsewhere.
var withoutCall = map[string]string{"ecr": "BatchImportUpstreamImage"}

// TestEveryOperationNeedsSomething: the table of what calls need has each operation of each service, no others, and only members that
// the operations' inputs have.
func TestEveryOperationNeedsSomething(t *testing.T) {
	table, err := authorize.New("000000000000", "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	p := &Plane{}
	p.buildServices()
	for _, api := range apis(p.services()) {
		var names []string
		for _, o := range api.Service.Operations() {
			names = append(names, o.Name)
			if !table.Knows(api.Name, o.Name) {
				t.Errorf("internal/iam/authorize/operations/%s.txt lacks %s", api.Name, o.Name)
				continue
			}
			for _, member := range table.Members(api.Name, o.Name) {
				if !hasMember(o.In, strings.Split(member, ".")) {
					t.Errorf("the input of %s:%s has no %s", api.Name, o.Name, member)
				}
			}
		}
		for _, o := range table.Operations(api.Name) {
			if !slices.Contains(names, o) && withoutCall[api.Name] != o {
				t.Errorf("%s has no operation %s", api.Name, o)
			}
		}
	}
}

// hasMember reports whether a struct has a member at a path.
func hasMember(typ reflect.Type, path []string) bool {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if len(path) == 0 {
		return typ.Kind() != reflect.Struct
	}
	if typ.Kind() != reflect.Struct {
		return false
	}
	f, ok := typ.FieldByName(path[0])
	return ok && hasMember(f.Type, path[1:])
}
