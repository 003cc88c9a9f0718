package wire

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/model"
)

// clients are the SDK's clients, by which the test finds the services' structs.
var clients = []struct {
	api    model.API
	client any
}{
	{ECS(nil), &ecs.Client{}},
	{Logs(nil), &cloudwatchlogs.Client{}},
	{STS(nil), &sts.Client{}},
}

// TestMemberNamesMatchTheModel compares our wire names with the model's, for each struct of each operation. We derive a member's name
// from its field's name. The newest SDKs also carry the model's names, in a form that only their codecs read.
func TestMemberNamesMatchTheModel(t *testing.T) {
	for _, c := range clients {
		s := codec.NewShapes(rulesOf(&c.api))
		checked := 0
		for _, sh := range everyShape(t, s, c.client) {
			want := modelNames(sh)
			if want == nil {
				continue
			}
			checked++
			got := slices.Sorted(maps.Keys(sh.ByName))
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s has members %v, in the model %v", c.api.Name, sh.Type, got, want)
			}
		}
		t.Logf("%s: %d structs", c.api.Name, checked)
	}
}

// TestOperationsMatchTheSDK checks that the generated lists match the current SDK. If it fails, run go generate.
func TestOperationsMatchTheSDK(t *testing.T) {
	for _, c := range clients {
		typ := reflect.TypeOf(c.client)
		var want []string
		for i := range typ.NumMethod() {
			if m := typ.Method(i); m.Type.NumIn() == 4 && m.Type.NumOut() == 2 {
				want = append(want, m.Name)
			}
		}
		if !slices.Equal(c.api.Operations, want) {
			t.Errorf("%s: the operations are %v, the SDK's %v", c.api.Name, c.api.Operations, want)
		}
	}
}

// everyShape returns the shape of each struct that a client's operations use.
func everyShape(t *testing.T, s *codec.Shapes, client any) map[reflect.Type]*codec.Shape {
	structs := map[reflect.Type]*codec.Shape{}
	var add func(sh *codec.Shape)
	add = func(sh *codec.Shape) {
		if sh.Elem != nil {
			add(sh.Elem)
		}
		if structs[sh.Type] != nil {
			return
		}
		if sh.Kind == codec.KindStructure {
			structs[sh.Type] = sh
		}
		for _, m := range sh.Members {
			add(m.Shape)
		}
	}
	typ := reflect.TypeOf(client)
	for i := range typ.NumMethod() {
		if m := typ.Method(i).Type; m.NumIn() == 4 && m.NumOut() == 2 {
			add(s.Of(m.In(2).Elem()))
			add(s.Of(m.Out(0).Elem()))
		}
	}
	if len(structs) == 0 {
		t.Fatal("found no operations")
	}
	return structs
}

// modelNames returns the names of a structure's members in the service's model, or nil if the SDK doesn't have them.
func modelNames(sh *codec.Shape) []string {
	v, ok := reflect.New(sh.Type).Interface().(smithy.Serializable)
	if !ok {
		return nil
	}
	schema := readSchema(v)
	if schema == nil { // an output without members has no schema
		return nil
	}
	names := []string{}
	for name, m := range schema.Members() {
		if !isEventStream(m) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isEventStream reports whether a member is an event stream. Structs have no field for it.
func isEventStream(m *smithy.Schema) bool {
	return m.Type() == smithy.ShapeTypeUnion && strings.HasSuffix(m.TargetID().Name, "Stream")
}

// readSchema returns the schema that a struct passes when it serializes itself.
func readSchema(v smithy.Serializable) (schema *smithy.Schema) {
	var r schemaReader
	defer func() {
		recover() //nolint:errcheck // writing any member panics, because schemaReader has no serializer
		schema = r.schema
	}()
	v.Serialize(&r)
	return nil
}

// schemaReader records the schema of the first struct written to it. Its embedded serializer is nil.
type schemaReader struct {
	smithy.ShapeSerializer
	schema *smithy.Schema
}

func (r *schemaReader) WriteStruct(s *smithy.Schema) { r.schema = s }
func (r *schemaReader) CloseStruct()                 {}
