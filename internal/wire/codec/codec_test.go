package codec

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"

	logstypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/wire/model"
)

func encodeJSON(s *Shapes, v any) (string, error) {
	e := jsonEncoder{}
	value := reflect.ValueOf(v).Elem()
	e.value(s.Of(value.Type()), Address(value))
	return string(e.b), e.err
}

func readJSON(s *Shapes, body string, into any) error {
	value := reflect.ValueOf(into).Elem()
	return DecodeJSON(new(jsontext.Decoder), []byte(body), s.Of(value.Type()), value, false)
}

// everything has a member of each kind.
type everything struct {
	Text      *string
	Enum      types.LaunchType
	Flag      bool
	MaybeFlag *bool
	Int       int32
	Long      *int64
	Double    float64
	Float     *float32
	At        *time.Time
	Blob      []byte
	Strings   []string
	Enums     []types.LaunchType
	Map       map[string]string
	Maps      map[string][]int32
	Nested    *everything
	List      []everything
	Union     logstypes.ResourceConfig
	hidden    string
}

func TestJSON(t *testing.T) {
	s := NewShapes(logsRules)
	at := time.UnixMilli(1700000000120).UTC()
	before := time.UnixMilli(-1500).UTC()
	const scalars = `"flag":false,"int":0,"double":0.0`
	for _, c := range []struct {
		name string
		in   everything
		want string
	}{
		{"nothing is set", everything{hidden: "x"}, `{` + scalars + `}`},
		{
			"empty but there",
			everything{Text: aws.String(""), Blob: []byte{}, Strings: []string{}, Map: map[string]string{}, Nested: &everything{}},
			`{"text":"",` + scalars + `,"blob":"","strings":[],"map":{},"nested":{` + scalars + `}}`,
		},
		{
			"text", everything{Text: aws.String("a\"b\\c\n\t\x01é\u2028</script>")},
			`{"text":"a\"b\\c\n\t\u0001é` + "\u2028" + `</script>",` + scalars + `}`,
		},
		{"long text", everything{Text: aws.String("0123456789\x7f\"")}, `{"text":"0123456789` + "\x7f" + `\"",` + scalars + `}`},
		{"enums", everything{
			Enum:  "FARGATE",
			Enums: []types.LaunchType{"EC2", ""},
		}, `{"enum":"FARGATE",` + scalars + `,"enums":["EC2",""]}`},
		{
			"scalars",
			everything{
				Flag:      true,
				MaybeFlag: aws.Bool(false),
				Int:       math.MinInt32,
				Long:      aws.Int64(math.MaxInt64),
				Double:    1e300,
				Float:     aws.Float32(0.1),
			},
			`{"flag":true,"maybeFlag":false,"int":-2147483648,"long":9223372036854775807,"double":1e+300,"float":0.1}`,
		},
		{"a timestamp", everything{At: &at}, `{` + scalars + `,"at":1700000000.120}`},
		{"a timestamp before 1970", everything{At: &before}, `{` + scalars + `,"at":-1.500}`},
		{"a blob", everything{Blob: []byte{0, 255}}, `{` + scalars + `,"blob":"AP8="}`},
		{
			"maps, in order",
			everything{Map: map[string]string{"b": "2", "a": "1"}, Maps: map[string][]int32{"x": {1}}},
			`{` + scalars + `,"map":{"a":"1","b":"2"},"maps":{"x":[1]}}`,
		},
		{
			"a list", everything{List: []everything{{}, {Flag: true}}},
			`{` + scalars + `,"list":[{` + scalars + `},{"flag":true,"int":0,"double":0.0}]}`,
		},
		{
			"a union",
			everything{
				Union: &logstypes.ResourceConfigMemberOpenSearchResourceConfig{
					Value: logstypes.OpenSearchResourceConfig{RetentionDays: aws.Int32(3)},
				},
			},
			`{` + scalars + `,"union":{"openSearchResourceConfig":{"retentionDays":3}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := encodeJSON(s, &c.in)
			if err != nil || got != c.want {
				t.Fatalf("got %s %v", got, err)
			}
			var back everything
			if err := readJSON(s, got, &back); err != nil {
				t.Fatal(err)
			}
			c.in.hidden = ""
			if !reflect.DeepEqual(back, c.in) {
				t.Errorf("came back as %+v", back)
			}
		})
	}
}

func TestJSONOddities(t *testing.T) {
	s := NewShapes(logsRules)
	for _, c := range []struct {
		name string
		in   everything
		want string
	}{
		{
			"text that is no UTF-8", everything{Text: aws.String("a\xffb")},
			`{"text":"a` + "\ufffd" + `b","flag":false,"int":0,"double":0.0}`,
		},
		{"no number", everything{Double: math.NaN()}, `{"flag":false,"int":0,"double":"NaN"}`},
		{"infinite", everything{Double: math.Inf(-1)}, `{"flag":false,"int":0,"double":"-Infinity"}`},
	} {
		if got, err := encodeJSON(s, &c.in); err != nil || got != c.want {
			t.Errorf("%s: got %s %v", c.name, got, err)
		}
	}
	for body, want := range map[string]string{
		`{"double":"Infinity"}`:  "",
		`{"double":"1"}`:         "double: expected a number of 64 bits, not a string.",
		`{"float":1e39}`:         "float: expected a number of 32 bits, not the number 1e39.",
		`{"double":1e999}`:       "double: expected a number of 64 bits",
		`{"blob":"%"}`:           "blob: expected base64",
		`{"blob":1}`:             "blob: expected base64, not a number.",
		`{"map":{"a":null}}`:     "map.a: expected a string, not null.",
		`{"map":[]}`:             "map: expected an object, not a list.",
		`{"maps":{"a/b":["x"]}}`: "maps.a/b[0]: expected a whole number, not a string.",
		`{"union":{}}`:           "",

		`{"union":{"openSearchResourceConfig":null}}`: "",

		`{"union":{"other":1}}`: "union.other: there is no such member in ResourceConfig.",

		`{"union":{"openSearchResourceConfig":{},"openSearchResourceConfig":{}}}`: "duplicate object member name",
		`{"union":1}`: "union: expected an object, not the number 1.",
		`{"nested":{"nested":{"list":[{},{"flag":0}]}}}`: "nested.nested.list[1].flag: expected true or false, not the number 0.",
		`{"\u0069nt":5}`: "",
	} {
		err := readJSON(s, body, &everything{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

func TestForm(t *testing.T) {
	s := NewShapes(Rules{Unions: logsRules.Unions})
	at := time.Date(2026, 11, 21, 12, 0, 0, 5e8, time.UTC)
	for _, c := range []struct {
		form string
		want everything
		err  string
	}{
		{form: "", want: everything{}},
		{
			form: "Text=&Flag=true&MaybeFlag=false&Int=-1&Long=9223372036854775807",
			want: everything{Text: aws.String(""), Flag: true, MaybeFlag: aws.Bool(false), Int: -1, Long: aws.Int64(math.MaxInt64)},
		},
		{form: "Double=1.5&Float=-1e3&Blob=AP8%3D", want: everything{Double: 1.5, Float: aws.Float32(-1000), Blob: []byte{0, 255}}},
		{form: "At=2026-11-21T12:00:00.5Z", want: everything{At: &at}},
		{form: "At=2026-11-21T13:00:00.5%2B01:00", want: everything{At: &at}},
		{form: "Strings.member.2=b&Strings.member.10=c&Strings.member.1=a", want: everything{Strings: []string{"a", "b", "c"}}},
		{
			form: "Map.entry.1.key=a&Map.entry.1.value=1&Map.entry.2.key=b&Map.entry.2.value=",
			want: everything{Map: map[string]string{"a": "1", "b": ""}},
		},
		{form: "Maps.1.key=a&Maps.1.value.member.1=7", want: everything{Maps: map[string][]int32{"a": {7}}}},
		{
			form: "Nested.List.member.1.Nested.Int=1",
			want: everything{Nested: &everything{List: []everything{{Nested: &everything{Int: 1}}}}},
		},
		{form: "Flag=yes", err: "Flag: expected true or false."},
		{form: "Flag=True", err: "Flag: expected true or false."},
		{form: "Double=x", err: "Double: expected a number."},
		{form: "At=1700000000", err: "At: expected a timestamp as 2006-01-02T15:04:05Z."},
		{form: "Blob=%25", err: "Blob: expected base64."},
		{form: "Map.entry.1.key=a", err: "Map.1: an entry needs a key and a value."},
		{form: "Map.entry.1.key=a&Map.entry.1.value.x=a", err: "Map.1.value: expected one value."},
		{form: "Union=a", err: "Union: a types.ResourceConfig cannot be read."},
	} {
		form, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		var got everything
		err = DecodeForm(form, s.Of(reflect.TypeFor[everything]()), reflect.ValueOf(&got).Elem(), false)
		if c.err != "" {
			if err == nil || err.Error() != "SerializationException: "+c.err {
				t.Errorf("%s: got %v", c.form, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v %v", c.form, got, err)
		}
	}
}

func TestXML(t *testing.T) {
	s := NewShapes(Rules{Unions: logsRules.Unions})
	at := time.Date(2026, 11, 21, 13, 0, 0, 5e6, time.FixedZone("", 3600))
	const scalars = "<Flag>false</Flag><Int>0</Int><Double>0</Double>"
	for _, c := range []struct {
		in   everything
		want string
	}{
		{everything{}, scalars},
		{everything{Text: aws.String("<a> & \"b\"\r\n\x00é\xff")}, "<Text>&lt;a&gt; &amp; \"b\"&#xD;\n\ufffdé\ufffd</Text>" + scalars},
		{everything{
			Enum:   "EC2",
			Flag:   true,
			Int:    -1,
			Double: math.Inf(1),
			Float:  aws.Float32(0.1),
		}, "<Enum>EC2</Enum><Flag>true</Flag><Int>-1</Int><Double>Infinity</Double><Float>0.1</Float>"},
		{everything{Double: math.Inf(-1)}, "<Flag>false</Flag><Int>0</Int><Double>-Infinity</Double>"},
		{everything{At: &at, Blob: []byte{0, 255}}, scalars + "<At>2026-11-21T12:00:00.005Z</At><Blob>AP8=</Blob>"},
		{everything{Strings: []string{}}, scalars + "<Strings></Strings>"},
		{everything{Strings: []string{"a", ""}}, scalars + "<Strings><member>a</member><member></member></Strings>"},
		{
			everything{Map: map[string]string{"b": "2", "a": "1"}},
			scalars + "<Map><entry><key>a</key><value>1</value></entry><entry><key>b</key><value>2</value></entry></Map>",
		},
		{everything{Nested: &everything{}}, scalars + "<Nested>" + scalars + "</Nested>"},
	} {
		e := XML{}
		e.Value(s.Of(reflect.TypeOf(c.in)), Address(reflect.ValueOf(c.in)))
		if e.Err != nil || string(e.B) != c.want {
			t.Errorf("got %s %v", e.B, e.Err)
		}
	}
	e := XML{}
	e.Value(s.Of(reflect.TypeFor[everything]()), Address(reflect.ValueOf(everything{Union: &logstypes.UnknownUnionMember{}})))
	if e.Err == nil {
		t.Error("wrote a union, which Query has none of")
	}
}

// TestRoundTrip checks that random values survive encoding and decoding.
func TestRoundTrip(t *testing.T) {
	apis := []Rules{ecsRules, logsRules}
	for i, types := range [][]reflect.Type{
		{
			reflect.TypeFor[ecs.RegisterTaskDefinitionInput](), reflect.TypeFor[ecs.UpdateServiceInput](),
			reflect.TypeFor[ecs.DescribeTasksOutput](),
		},
		{
			reflect.TypeFor[cloudwatchlogs.PutLogEventsInput](), reflect.TypeFor[cloudwatchlogs.PutIntegrationInput](),
			reflect.TypeFor[cloudwatchlogs.GetQueryResultsOutput](),
		},
	} {
		s := NewShapes(apis[i])
		for _, typ := range types {
			t.Run(typ.String(), rapid.MakeCheck(func(t *rapid.T) {
				in := reflect.New(typ)
				draw(t, s.Of(typ), in.Elem(), 0)
				body, err := encodeJSON(s, in.Interface())
				if err != nil {
					t.Fatal(err)
				}
				back := reflect.New(typ)
				if err := readJSON(s, body, back.Interface()); err != nil {
					t.Fatalf("%v of %s", err, body)
				}
				if !reflect.DeepEqual(back.Interface(), in.Interface()) {
					t.Fatalf("%s came back as %+v", body, back.Elem())
				}
			}))
		}
	}
}

// draw fills v with a random value of its shape.
func draw(t *rapid.T, sh *Shape, v reflect.Value, depth int) {
	switch sh.Kind {
	case KindString:
		v.SetString(rapid.String().Draw(t, "string"))
	case KindBool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case KindInt:
		v.SetInt(rapid.Int64().Draw(t, "int") >> (64 - sh.Type.Bits()))
	case kindFloat:
		v.SetFloat(rapid.Float64().Draw(t, "float"))
	case KindTime:
		ms := rapid.Int64Range(-maxSeconds*1000, maxSeconds*1000).Draw(t, "time")
		v.Set(reflect.ValueOf(time.UnixMilli(ms).UTC()))
	case KindBlob:
		v.SetBytes(rapid.SliceOf(rapid.Byte()).Draw(t, "blob"))
	case KindPointer:
		v.Set(reflect.New(sh.Elem.Type))
		draw(t, sh.Elem, v.Elem(), depth)
	case KindList:
		v.Set(reflect.MakeSlice(sh.Type, 0, 0))
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			e := reflect.New(sh.Elem.Type).Elem()
			draw(t, sh.Elem, e, depth+1)
			v.Set(reflect.Append(v, e))
		}
	case kindMap:
		v.Set(reflect.MakeMap(sh.Type))
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			e := reflect.New(sh.Elem.Type).Elem()
			draw(t, sh.Elem, e, depth+1)
			v.SetMapIndex(reflect.ValueOf(rapid.String().Draw(t, "key")).Convert(sh.Type.Key()), e)
		}
	case kindUnion:
		m := rapid.SampledFrom(sh.Members).Draw(t, "variant")
		v.Set(reflect.New(m.typ))
		draw(t, m.Shape, v.Elem().Elem().FieldByName("Value"), depth+1)
	case KindStructure:
		for _, m := range sh.Members {
			if m.Shape.Kind != kindDocument && rapid.IntRange(0, depth).Draw(t, "absent") == 0 {
				draw(t, m.Shape, v.Field(m.Index), depth+1)
			}
		}
	}
}

// FuzzDecodeJSON checks that no input makes the decoder panic, and that decoded values survive another round trip.
func FuzzDecodeJSON(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `{"family":"a","cpu":null,"containerDefinitions":[{"name":"b","memory":1,"dockerLabels":{"a":"b"}}]}`,
		`{"containerDefinitions":[{"memory":1e9}]}`, `{"volumes":[{"host":{}}],"tags":[]}`, `{"family":"\ud83d\ude00"}`, `[[[[`,
	} {
		f.Add(body)
	}
	s := NewShapes(ecsRules)
	f.Fuzz(func(t *testing.T, body string) {
		for _, in := range []any{&ecs.RegisterTaskDefinitionInput{}, &ecs.CreateServiceInput{}, &ecs.SubmitTaskStateChangeInput{}} {
			if readJSON(s, body, in) != nil {
				continue
			}
			once, err := encodeJSON(s, in)
			if err != nil {
				t.Fatal(err)
			}
			second := reflect.New(reflect.TypeOf(in).Elem()).Interface()
			if err := readJSON(s, once, second); err != nil {
				t.Fatalf("%v of %s", err, once)
			}
			if twice, _ := encodeJSON(s, second); twice != once {
				t.Fatalf("%s became %s", once, twice)
			}
		}
	})
}

// FuzzPlainStrings checks that encoding/json reads the same from every list that plainStrings accepts.
func FuzzPlainStrings(f *testing.F) {
	for _, list := range []string{
		`[]`, `["a"]`, `: [ "a" ,"b c"]`, `["a",]`, `["a" "b"]`, `["a]"]`, `["\u0041"]`, `["é"]`, `[null]`, "[\"\n\"]", `["a"`,
	} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := plainStrings([]byte(text), maxItems)
		if got == nil {
			return
		}
		list := strings.TrimLeft(text, ":,"+whitespace)
		list = list[:strings.IndexByte(list, ']')+1]
		var want []string
		if err := json.Unmarshal([]byte(list), &want); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q became %q, not %q: %v", text, got, want, err)
		}
	})
}

// FuzzForm checks that no form makes the decoder panic, and that the decoder reads no more than the form has.
func FuzzForm(f *testing.F) {
	for _, form := range []string{
		"", "Action=AssumeRole&RoleArn=a", "Tags.member.1.Key=a&Tags.1.Key=b", "PolicyArns.member.1.arn=a", "Tags=",
		"DurationSeconds=1e3", "a.b.c.d.e=1&a=2",
	} {
		f.Add(form)
	}
	s := NewShapes(stsRules)
	sh := s.Of(reflect.TypeFor[sts.AssumeRoleInput]())
	f.Fuzz(func(t *testing.T, encoded string) {
		form, err := url.ParseQuery(encoded)
		if err != nil {
			return
		}
		var in sts.AssumeRoleInput
		err = DecodeForm(form, sh, reflect.ValueOf(&in).Elem(), false)
		if err == nil && len(in.Tags)+len(in.PolicyArns)+len(in.TransitiveTagKeys) > len(form) {
			t.Fatalf("%d parameters became %+v", len(form), in)
		}
	})
}

// FuzzXML checks that any text is either read as a request's XML or refused, and that what encoding/xml doesn't read is refused.
func FuzzXML(f *testing.F) {
	f.Add([]byte(`<Delete><Object><Key>a</Key></Object><Quiet>true</Quiet></Delete>`))
	f.Add([]byte(`<Delete><Object><Key>a</Key></Object></Delete><Delete/>`))
	sh := deleteShape()
	f.Fuzz(func(t *testing.T, b []byte) {
		err := DecodeXML(b, sh, reflect.New(sh.Type).Elem())
		if err != nil {
			return
		}
		for in := xml.NewDecoder(bytes.NewReader(b)); ; {
			if _, err := in.Token(); err == io.EOF {
				return
			} else if err != nil {
				t.Fatalf("%q was read, but: %v", b, err)
			}
		}
	})
}

// deleteShape is the shape of DeleteObjects' body.
func deleteShape() *Shape {
	return NewShapes(Rules{Places: map[string]model.Place{
		"Delete.Objects":       {In: model.InBody, Name: "Object"},
		"Delete.Quiet":         {In: model.InBody, Name: "Quiet"},
		"ObjectIdentifier.Key": {In: model.InBody, Name: "Key"},
	}}).Of(reflect.TypeFor[s3types.Delete]())
}

// TestWideBodies: a body with very many small values is refused before it becomes much memory.
func TestWideBodies(t *testing.T) {
	fill := func(first, part, last string) []byte {
		return []byte(first + strings.Repeat(part, (8<<20)/len(part)) + last)
	}
	run := NewShapes(ecsRules).Of(reflect.TypeFor[ecs.RunTaskInput]())
	stream := NewShapes(logsRules).Of(reflect.TypeFor[cloudwatchlogs.CreateLogGroupInput]())
	tags := NewShapes(Rules{}).Of(reflect.TypeFor[sts.AssumeRoleInput]())
	for _, c := range []struct {
		name   string
		decode func() error
		want   string
	}{
		{"XML of unknown elements", func() error {
			return DecodeXML(fill("<Delete>", "<a/>", "</Delete>"), deleteShape(), reflect.New(deleteShape().Type).Elem())
		}, "too many elements"},
		{"XML of known elements", func() error {
			return DecodeXML(fill("<Delete>", "<Object></Object>", "</Delete>"), deleteShape(), reflect.New(deleteShape().Type).Elem())
		}, "too many elements"},
		{"XML of attributes", func() error {
			return DecodeXML(fill("<Delete ", "a='' ", "/>"), deleteShape(), reflect.New(deleteShape().Type).Elem())
		}, "too many elements"},
		{"CBOR of empty maps", func() error {
			return DecodeCBOR(fill("\x9f", "\x9f\xa0\xa0\xa0\xa0\xa0\xff", "\xff"), run, reflect.New(run.Type).Elem(), false)
		}, "values"},
		{"a JSON map", func() error {
			var b bytes.Buffer
			b.WriteString(`{"logGroupName":"g","tags":{`)
			for i := range 100_000 {
				fmt.Fprintf(&b, `"%d":"",`, i)
			}
			b.WriteString(`"x":""}}`)
			return DecodeJSON(new(jsontext.Decoder), b.Bytes(), stream, reflect.New(stream.Type).Elem(), false)
		}, "cannot have more than"},
		{"JSON strings", func() error {
			return DecodeJSON(new(jsontext.Decoder), fill(`{"capacityProviderStrategy":[],"tags":[`, "{},", "{}]}"), run,
				reflect.New(run.Type).Elem(), false)
		}, "cannot have more than"},
		{"a form of long names", func() error {
			form := url.Values{}
			for i := range 9999 {
				form.Set(fmt.Sprint(i)+strings.Repeat(".a", 60), "")
			}
			return DecodeForm(form, tags, reflect.New(tags.Type).Elem(), false)
		}, "dots"},
	} {
		if err := c.decode(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestCountCBOR: the count is of heads, whatever is in texts.
func TestCountCBOR(t *testing.T) {
	for body, want := range map[string]int{
		"":                         0,
		"\x00":                     1,
		"\xa1\x61a\x82\x01\x02":    5,
		"\x58\x03\xa0\xa0\xa0\xf6": 2,
		"\x7f\x61a\x61b\xff":       4,
		"\xfb12345678\x19\x00\x00": 2,
		"\x5a\xff\xff\xff\xff":     0, // announces more than there is
		"\x1b\x00":                 0,
	} {
		if got := countCBOR([]byte(body)); got != want {
			t.Errorf("%x has %d, want %d", body, got, want)
		}
	}
}

// BenchmarkDecodeXML reads DeleteObjects of a thousand keys, and refuses 8 MB of empty elements.
func BenchmarkDecodeXML(b *testing.B) {
	sh := deleteShape()
	for name, body := range map[string]string{
		"keys": "<Delete>" + strings.Repeat("<Object><Key>some/key/of/usual/length</Key></Object>", 1000) + "</Delete>",
		"wide": "<Delete>" + strings.Repeat("<a/>", 2<<20) + "</Delete>",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				DecodeXML([]byte(body), sh, reflect.New(sh.Type).Elem()) //nolint:errcheck // one is refused
			}
		})
	}
}
