package wire

import (
	"encoding/base64"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/document"
)

// TestEveryShapeByReflection encodes every structure of every operation by its offsets in memory and by reflection:
// the bytes are the same.
func TestEveryShapeByReflection(t *testing.T) {
	for _, c := range []struct {
		api    API
		client any
	}{
		{ECS(nil), &ecs.Client{}},
		{Logs(nil), &cloudwatchlogs.Client{}},
		{STS(nil), &sts.Client{}},
		{CloudWatch(nil), &cloudwatch.Client{}},
		{ApplicationAutoScaling(nil), &applicationautoscaling.Client{}},
		{AutoScaling(nil), &autoscaling.Client{}},
		{EC2(nil), &ec2.Client{}},
		{SQS(nil), &sqs.Client{}},
		{S3(nil), &s3.Client{}},
	} {
		s := newShapes(&c.api)
		filler := filler{rand.New(rand.NewPCG(1, 2)), c.api.NewDocument}
		size := 0
		structs := everyShape(t, s, c.client)
		for _, sh := range structs {
			if sh.check("", map[*shape]bool{}) != nil { // event streams
				continue
			}
			for range 5 {
				v := reflect.New(sh.typ).Elem()
				filler.fill(sh, v, 0)
				got := jsonEncoder{}
				got.value(sh, address(v))
				want := byReflection{}
				want.value(sh, v)
				if string(got.b) != string(want.b) || got.err != nil {
					t.Fatalf("%s: got %s %v, by reflection %s", sh.typ, got.b, got.err, want.b)
				}
				size += len(got.b)
			}
		}
		if size < 100*len(structs) {
			t.Errorf("%s: only %d bytes of %d structures", c.api.Name, size, len(structs))
		}
	}
}

// filler fills values at random, now and then with what encoders stumble on.
type filler struct {
	random      *rand.Rand
	newDocument func(any) any
}

func pick[T any](f filler, of ...T) T { return of[f.random.IntN(len(of))] }

func (f filler) fill(sh *shape, v reflect.Value, depth int) {
	switch sh.kind {
	case kindString:
		v.SetString(pick(f, "", "a", "plain text", "\"<&>\\", "é\x00\xff"))
	case kindBool:
		v.SetBool(pick(f, true, false))
	case kindInt:
		v.SetInt(pick[int64](f, 0, 1, -1, math.MaxInt64, math.MinInt64) >> (64 - sh.typ.Bits()))
	case kindFloat:
		v.SetFloat(pick[float64](f, 0, 1, -2.5, 1e300, math.NaN(), math.Inf(1), math.Inf(-1)))
	case kindTime:
		v.Set(reflect.ValueOf(pick(f, time.Time{}, time.UnixMilli(1700000000123), time.UnixMilli(-1))))
	case kindBlob:
		v.SetBytes(pick(f, nil, []byte{}, []byte("blob")))
	case kindDocument:
		v.Set(reflect.ValueOf(f.newDocument(map[string]any{"a": pick[any](f, 1, "b", []string{"c"})})))
	case kindUnion:
		m := sh.members[f.random.IntN(len(sh.members))]
		v.Set(reflect.New(m.typ))
		f.fill(m.shape, v.Elem().Elem().FieldByName("Value"), depth+1)
	case kindStructure:
		for _, m := range sh.members {
			f.fillMember(m.shape, v.Field(m.index), depth)
		}
	default:
		f.fillMany(sh, v, depth)
	}
}

// fillMember leaves members out, the deeper the more.
func (f filler) fillMember(sh *shape, v reflect.Value, depth int) {
	scalar := sh.kind < kindPointer || sh.kind == kindStructure
	if scalar || f.random.IntN(depth+4) < 3 && depth < 12 {
		f.fill(sh, v, depth+1)
	}
}

func (f filler) fillMany(sh *shape, v reflect.Value, depth int) {
	switch sh.kind {
	case kindPointer:
		if depth > 0 && f.random.IntN(8) == 0 {
			return
		}
		v.Set(reflect.New(sh.elem.typ))
		f.fill(sh.elem, v.Elem(), depth)
	case kindList:
		n := f.random.IntN(3)
		v.Set(reflect.MakeSlice(sh.typ, n, n))
		for i := range n {
			f.fill(sh.elem, v.Index(i), depth+1)
		}
	case kindMap:
		v.Set(reflect.MakeMap(sh.typ))
		for range f.random.IntN(4) {
			e := reflect.New(sh.elem.typ).Elem()
			f.fill(sh.elem, e, depth+1)
			v.SetMapIndex(reflect.ValueOf(pick(f, "b", "a", "\"", "c")).Convert(sh.typ.Key()), e)
		}
	}
}

// byReflection is the JSON encoder in its simplest form, against which the one by offsets is tested.
type byReflection struct{ jsonEncoder }

func (e *byReflection) value(sh *shape, v reflect.Value) {
	switch sh.kind {
	case kindString:
		e.string(v.String())
	case kindBool:
		e.b = strconv.AppendBool(e.b, v.Bool())
	case kindInt:
		e.b = strconv.AppendInt(e.b, v.Int(), 10)
	case kindFloat:
		e.float(v.Float(), sh.typ.Bits())
	case kindTime:
		e.time(v.Interface().(time.Time))
	case kindBlob:
		e.b = append(e.b, '"')
		e.b = base64.StdEncoding.AppendEncode(e.b, v.Bytes())
		e.b = append(e.b, '"')
	case kindPointer:
		e.pointer(sh, v)
	case kindList:
		e.list(sh, v)
	case kindMap:
		e.dictionary(sh, v)
	case kindStructure:
		e.structure(sh, v)
	case kindUnion:
		e.union(sh, v)
	case kindDocument:
		e.document(v)
	default:
		e.fail("a %s cannot be written", sh.typ)
	}
}

func (e *byReflection) structure(sh *shape, v reflect.Value) {
	e.b = append(e.b, '{')
	start := len(e.b)
	for i := range sh.members {
		m := &sh.members[i]
		f := v.Field(m.index)
		if absentByReflection(m, f) {
			continue
		}
		if len(e.b) > start {
			e.b = append(e.b, ',')
		}
		e.b = append(e.b, m.quoted...)
		e.value(m.shape, f)
	}
	e.b = append(e.b, '}')
}

func (e *byReflection) pointer(sh *shape, v reflect.Value) {
	if v.IsNil() { // in a list or a map, where it cannot be left out
		e.b = append(e.b, "null"...)
		return
	}
	e.value(sh.elem, v.Elem())
}

func (e *byReflection) list(sh *shape, v reflect.Value) {
	e.b = append(e.b, '[')
	for i := range v.Len() {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.value(sh.elem, v.Index(i))
	}
	e.b = append(e.b, ']')
}

func (e *byReflection) dictionary(sh *shape, v reflect.Value) {
	e.b = append(e.b, '{')
	for i, k := range sortedKeys(v) {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.string(k.String())
		e.b = append(e.b, ':')
		e.value(sh.elem, v.MapIndex(k))
	}
	e.b = append(e.b, '}')
}

func (e *byReflection) union(sh *shape, v reflect.Value) {
	held := v.Elem().Elem()
	i := slices.IndexFunc(sh.members, func(m member) bool { return m.typ == held.Type() })
	m, value := &sh.members[i], held.FieldByName("Value")
	e.b = append(e.b, '{')
	e.b = append(e.b, m.quoted...)
	e.value(m.shape, value)
	e.b = append(e.b, '}')
}

func (e *byReflection) document(v reflect.Value) {
	b, err := v.Interface().(document.Marshaler).MarshalSmithyDocument()
	if err != nil {
		e.fail("a document cannot be written: %w", err)
		return
	}
	e.b = append(e.b, b...)
}

func absentByReflection(m *member, v reflect.Value) bool {
	switch m.shape.kind {
	case kindString:
		return v.Len() == 0
	case kindBool, kindInt, kindFloat, kindTime, kindStructure:
		return false
	}
	return v.IsNil()
}
