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

// clients are what the services' structs are found by.
var clients = []struct {
	api    model.API
	client any
}{
	{ECS(nil), &ecs.Client{}},
	{Logs(nil), &cloudwatchlogs.Client{}},
	{STS(nil), &sts.Client{}},
}

// The newest SDKs carry the model's own names, in a form that only their codecs read. The rule that
// makes a member's name from its field's must agree with them for each struct of each operation.
func TestMemberNamesAreTheModels(t *testing.T) {
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

// The generated lists are the SDK's, as it is now; if not, go generate is due.
func TestOperationsAreTheSDKs(t *testing.T) {
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

// everyShape is the shape of each struct that a client's operations use.
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

// modelNames are the names of a structure's members in the service's model, nil where the SDK has
// them not.
func modelNames(sh *codec.Shape) []string {
	v, ok := reflect.New(sh.Type).Interface().(smithy.Serializable)
	if !ok {
		return nil
	}
	schema := readSchema(v)
	if schema == nil { // an output without members has none
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

// isEventStream reports whether a member is a stream, which is no field of its struct.
func isEventStream(m *smithy.Schema) bool {
	return m.Type() == smithy.ShapeTypeUnion && strings.HasSuffix(m.TargetID().Name, "Stream")
}

// readSchema returns the schema that a struct names when it is written.
func readSchema(v smithy.Serializable) (schema *smithy.Schema) {
	var r schemaReader
	defer func() {
		recover() //nolint:errcheck // a struct that has more to write than its name panics here
		schema = r.schema
	}()
	v.Serialize(&r)
	return nil
}

// schemaReader keeps the schema of the first struct that is written to it, and is nil for the rest.
type schemaReader struct {
	smithy.ShapeSerializer
	schema *smithy.Schema
}

func (r *schemaReader) WriteStruct(s *smithy.Schema) { r.schema = s }
func (r *schemaReader) CloseStruct()                 {}
