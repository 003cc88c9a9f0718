package codec

import (
	"fmt"
	"reflect"

	"strings"
	"testing"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// rowsOutput is an answer with kept rows.
type rowsOutput struct {
	Tasks    []*types.Task `wire:"kept"`
	Untagged []*types.Task `wire:"kept,as=Tasks,empty=Tags"`
}

func TestKeptRows(t *testing.T) {
	s := NewShapes(ecsRules)
	a := &types.Task{TaskArn: aws.String("a"), Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}}
	b := &types.Task{TaskArn: aws.String("b")}
	untagged := *a
	untagged.Tags = []types.Tag{}
	b2 := *b
	b2.Tags = []types.Tag{}
	for _, c := range []struct {
		name string
		rows rowsOutput
		want any
	}{
		{"none", rowsOutput{}, ecs.DescribeTasksOutput{}},
		{"an empty list", rowsOutput{Tasks: []*types.Task{}}, ecs.DescribeTasksOutput{Tasks: []types.Task{}}},
		{"as they are", rowsOutput{Tasks: []*types.Task{a, b, a}}, ecs.DescribeTasksOutput{Tasks: []types.Task{*a, *b, *a}}},
		{"without tags", rowsOutput{Untagged: []*types.Task{a, b}}, ecs.DescribeTasksOutput{Tasks: []types.Task{untagged, b2}}},
	} {
		value := reflect.New(reflect.TypeOf(c.want)).Elem()
		value.Set(reflect.ValueOf(c.want))
		want, err := encodeJSON(s, value.Addr().Interface())
		if err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"first", "again"} {
			if got, err := encodeJSON(s, &c.rows); err != nil || got != want {
				t.Errorf("%s, %s: got %s %v, want %s", c.name, when, got, err, want)
			}
		}
	}
	sh := s.Of(reflect.TypeFor[rowsOutput]())
	if n := len(sh.Members[0].Shape.kept.young) + len(sh.Members[1].Shape.kept.young); n != 4 {
		t.Errorf("kept %d rows, not two of each list", n)
	}
}

// TestKeptRowsAreBounded checks that at most two generations are kept, and that a row in use stays.
func TestKeptRowsAreBounded(t *testing.T) {
	var kept keptRows
	row := func(i int) *types.Task { return &types.Task{TaskArn: aws.String(fmt.Sprint(i))} }
	favorite := row(0)
	filler := []byte(strings.Repeat("x", 100<<10))
	kept.put(Address(reflect.ValueOf(favorite).Elem()), []byte("favorite"))
	generations := 0
	for i := range 1000 {
		before := kept.bytes
		kept.put(Address(reflect.ValueOf(row(i)).Elem()), filler)
		if kept.bytes < before {
			generations++
		}
		if b := kept.get(Address(reflect.ValueOf(favorite).Elem())); string(b) != "favorite" {
			t.Fatalf("lost what was asked for after %d rows", i)
		}
		held := 0
		for _, generation := range []map[unsafe.Pointer][]byte{kept.young, kept.older} {
			for _, b := range generation {
				held += len(b)
			}
		}
		if held > 2*maxKeptBytes {
			t.Fatalf("%d bytes are kept", held)
		}
	}
	if generations < 5 {
		t.Errorf("only %d generations went", generations)
	}
}

// TestAModifiedRowIsFound checks that builds with the race detector notice a row that was modified after it was put.
func TestAModifiedRowIsFound(t *testing.T) {
	sh := NewShapes(ecsRules).Of(reflect.TypeFor[*types.Task]())
	row := &types.Task{TaskArn: aws.String("a")}
	p := Address(reflect.ValueOf(row).Elem())
	e := jsonEncoder{}
	e.pointer(sh, p)
	checkKept(sh, p, e.b)
	defer func() {
		if message := fmt.Sprint(recover()); !strings.Contains(message, "a types.Task was modified after it was put") {
			t.Errorf("got %s", message)
		}
	}()
	*row.TaskArn = "b"
	checkKept(sh, p, e.b)
}

// TestOnlyRowsAreKept checks that the tag is refused on anything but lists of pointers.
func TestOnlyRowsAreKept(t *testing.T) {
	type copies struct {
		Tasks []types.Task `wire:"kept"`
	}
	sh := NewShapes(ecsRules).Of(reflect.TypeFor[copies]())
	if err := sh.check("copies", map[*Shape]bool{}); err == nil ||
		!strings.Contains(err.Error(), "copies.tasks: a []types.Task cannot be put on the wire") {
		t.Errorf("got %v", err)
	}
}
