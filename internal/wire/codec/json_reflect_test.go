package codec

import (
	"encoding/base64"
	"maps"
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

	"github.com/pintle/pintle/internal/wire/model"
)

// TestEveryShapeByReflection encodes every structure of every operation twice, from memory and by reflection. The bytes must be
// the same.
func TestEveryShapeByReflection(t *testing.T) {
	for _, c := range []struct {
		name   string
		rules  Rules
		client any
	}{
		{"ECS", Rules{CamelCase: true, Unions: ecsRules.Unions, NewDocument: ecsRules.NewDocument}, &ecs.Client{}},
		{"Logs", Rules{CamelCase: true, Unions: logsRules.Unions}, &cloudwatchlogs.Client{}},
		{"STS", Rules{CamelCase: true}, &sts.Client{}},
		{"CloudWatch", Rules{CamelCase: true, Unions: cloudWatchRules.Unions}, &cloudwatch.Client{}},
		{"ApplicationAutoScaling", Rules{CamelCase: true}, &applicationautoscaling.Client{}},
		{"AutoScaling", Rules{CamelCase: true}, &autoscaling.Client{}},
		{"EC2", Rules{CamelCase: true}, &ec2.Client{}},
		{"SQS", Rules{CamelCase: true}, &sqs.Client{}},
		{"S3", Rules{CamelCase: true, Unions: s3Rules.Unions, Places: s3Rules.Places}, &s3.Client{}},
	} {
		s := NewShapes(c.rules)
		filler := filler{rand.New(rand.NewPCG(1, 2)), c.rules.NewDocument}
		size := 0
		structs := allShapes(t, s, c.client)
		for _, sh := range structs {
			if sh.check("", map[*Shape]bool{}) != nil { // event streams
				continue
			}
			for range 5 {
				v := reflect.New(sh.Type).Elem()
				filler.fill(sh, v, 0)
				got := jsonEncoder{}
				got.value(sh, Address(v))
				want := byReflection{}
				want.value(sh, v)
				if string(got.b) != string(want.b) || got.err != nil {
					t.Fatalf("%s: got %s %v, by reflection %s", sh.Type, got.b, got.err, want.b)
				}
				size += len(got.b)
			}
		}
		if size < 100*len(structs) {
			t.Errorf("%s: only %d bytes of %d structures", c.name, size, len(structs))
		}
	}
}

// filler fills values at random, sometimes with values that encoders easily get wrong.
type filler struct {
	random      *rand.Rand
	newDocument func(any) any
}

func pick[T any](f filler, of ...T) T { return of[f.random.IntN(len(of))] }

func (f filler) fill(sh *Shape, v reflect.Value, depth int) {
	switch sh.Kind {
	case KindString:
		v.SetString(pick(f, "", "a", "plain text", "\"<&>\\", "é\x00\xff"))
	case KindBool:
		v.SetBool(pick(f, true, false))
	case KindInt:
		v.SetInt(pick[int64](f, 0, 1, -1, math.MaxInt64, math.MinInt64) >> (64 - sh.Type.Bits()))
	case kindFloat:
		v.SetFloat(pick[float64](f, 0, 1, -2.5, 1e300, math.NaN(), math.Inf(1), math.Inf(-1)))
	case KindTime:
		v.Set(reflect.ValueOf(pick(f, time.Time{}, time.UnixMilli(1700000000123), time.UnixMilli(-1))))
	case KindBlob:
		v.SetBytes(pick(f, nil, []byte{}, []byte("blob")))
	case kindDocument:
		v.Set(reflect.ValueOf(f.newDocument(map[string]any{"a": pick[any](f, 1, "b", []string{"c"})})))
	case kindUnion:
		m := sh.Members[f.random.IntN(len(sh.Members))]
		v.Set(reflect.New(m.typ))
		f.fill(m.Shape, v.Elem().Elem().FieldByName("Value"), depth+1)
	case KindStructure:
		for _, m := range sh.Members {
			f.fillMember(m.Shape, v.Field(m.Index), depth)
		}
	default:
		f.fillMany(sh, v, depth)
	}
}

// fillMember leaves some members out, more of them at greater depth.
func (f filler) fillMember(sh *Shape, v reflect.Value, depth int) {
	scalar := sh.Kind < KindPointer || sh.Kind == KindStructure
	if scalar || f.random.IntN(depth+4) < 3 && depth < 12 {
		f.fill(sh, v, depth+1)
	}
}

func (f filler) fillMany(sh *Shape, v reflect.Value, depth int) {
	switch sh.Kind {
	case KindPointer:
		if depth > 0 && f.random.IntN(8) == 0 {
			return
		}
		v.Set(reflect.New(sh.Elem.Type))
		f.fill(sh.Elem, v.Elem(), depth)
	case KindList:
		n := f.random.IntN(3)
		v.Set(reflect.MakeSlice(sh.Type, n, n))
		for i := range n {
			f.fill(sh.Elem, v.Index(i), depth+1)
		}
	case kindMap:
		v.Set(reflect.MakeMap(sh.Type))
		for range f.random.IntN(4) {
			e := reflect.New(sh.Elem.Type).Elem()
			f.fill(sh.Elem, e, depth+1)
			v.SetMapIndex(reflect.ValueOf(pick(f, "b", "a", "\"", "c")).Convert(sh.Type.Key()), e)
		}
	}
}

// byReflection is the simplest JSON encoder. The one that reads memory is tested against it.
type byReflection struct{ jsonEncoder }

func (e *byReflection) value(sh *Shape, v reflect.Value) {
	switch sh.Kind {
	case KindString:
		e.string(v.String())
	case KindBool:
		e.b = strconv.AppendBool(e.b, v.Bool())
	case KindInt:
		e.b = strconv.AppendInt(e.b, v.Int(), 10)
	case kindFloat:
		e.float(v.Float(), sh.Type.Bits())
	case KindTime:
		e.time(v.Interface().(time.Time))
	case KindBlob:
		e.b = append(e.b, '"')
		e.b = base64.StdEncoding.AppendEncode(e.b, v.Bytes())
		e.b = append(e.b, '"')
	case KindPointer:
		e.pointer(sh, v)
	case KindList:
		e.list(sh, v)
	case kindMap:
		e.dictionary(sh, v)
	case KindStructure:
		e.structure(sh, v)
	case kindUnion:
		e.union(sh, v)
	case kindDocument:
		e.document(v)
	default:
		e.fail("a %s cannot be written", sh.Type)
	}
}

func (e *byReflection) structure(sh *Shape, v reflect.Value) {
	e.b = append(e.b, '{')
	start := len(e.b)
	for i := range sh.Members {
		m := &sh.Members[i]
		f := v.Field(m.Index)
		if absentByReflection(m, f) || m.Place.In != model.InBody {
			continue
		}
		if len(e.b) > start {
			e.b = append(e.b, ',')
		}
		e.b = append(e.b, m.quoted...)
		e.value(m.Shape, f)
	}
	e.b = append(e.b, '}')
}

func (e *byReflection) pointer(sh *Shape, v reflect.Value) {
	if v.IsNil() { // in a list or a map, where it can't be left out
		e.b = append(e.b, "null"...)
		return
	}
	e.value(sh.Elem, v.Elem())
}

func (e *byReflection) list(sh *Shape, v reflect.Value) {
	e.b = append(e.b, '[')
	for i := range v.Len() {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.value(sh.Elem, v.Index(i))
	}
	e.b = append(e.b, ']')
}

func (e *byReflection) dictionary(sh *Shape, v reflect.Value) {
	e.b = append(e.b, '{')
	for i, k := range SortedKeys(v) {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.string(k.String())
		e.b = append(e.b, ':')
		e.value(sh.Elem, v.MapIndex(k))
	}
	e.b = append(e.b, '}')
}

func (e *byReflection) union(sh *Shape, v reflect.Value) {
	held := v.Elem().Elem()
	i := slices.IndexFunc(sh.Members, func(m Member) bool { return m.typ == held.Type() })
	m := &sh.Members[i]
	value := held.FieldByName("Value")
	e.b = append(e.b, '{')
	e.b = append(e.b, m.quoted...)
	e.value(m.Shape, value)
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

func absentByReflection(m *Member, v reflect.Value) bool {
	switch m.Shape.Kind {
	case KindString:
		return v.Len() == 0
	case KindBool, KindInt, kindFloat, KindTime, KindStructure:
		return false
	}
	return v.IsNil()
}

// allShapes returns the shape of each struct that a client's operations use.
func allShapes(t *testing.T, s *Shapes, client any) map[reflect.Type]*Shape {
	typ := reflect.TypeOf(client)
	operations := 0
	for i := range typ.NumMethod() {
		m := typ.Method(i).Type
		if m.NumIn() == 4 && m.NumOut() == 2 {
			operations++
			s.Of(m.In(2).Elem())
			s.Of(m.Out(0).Elem())
		}
	}
	structs := maps.Clone(s.made)
	maps.DeleteFunc(structs, func(_ reflect.Type, sh *Shape) bool { return sh.Kind != KindStructure })
	if operations == 0 || len(structs) == 0 {
		t.Fatal("found no operations")
	}
	return structs
}

// TestEveryOperationHasAShape checks that every structure of every operation can be encoded, except event streams.
func TestEveryOperationHasAShape(t *testing.T) {
	for _, c := range []struct {
		rules  Rules
		client any
	}{
		{ecsRules, &ecs.Client{}},
		{logsRules, &cloudwatchlogs.Client{}},
		{stsRules, &sts.Client{}},
	} {
		for _, sh := range allShapes(t, NewShapes(c.rules), c.client) {
			if err := sh.check(sh.Type.Name(), map[*Shape]bool{}); err != nil {
				t.Error(err)
			}
		}
	}
}
