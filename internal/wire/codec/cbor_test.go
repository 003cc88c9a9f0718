package codec

import (
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"pgregory.net/rapid"
)

func encodeCBOR(s *Shapes, v any) ([]byte, error) {
	e := cborEncoder{}
	value := reflect.ValueOf(v).Elem()
	e.value(s.Of(value.Type()), Address(value))
	return e.b, e.err
}

func readCBOR(s *Shapes, body []byte, into any) error {
	value := reflect.ValueOf(into).Elem()
	return DecodeCBOR(body, s.Of(value.Type()), value, false)
}

// TestCBORRoundTrip checks that values survive encoding and decoding.
func TestCBORRoundTrip(t *testing.T) {
	s := NewShapes(cloudWatchRules)
	for _, typ := range []reflect.Type{
		reflect.TypeFor[cloudwatch.PutMetricDataInput](), reflect.TypeFor[cloudwatch.PutMetricAlarmInput](),
		reflect.TypeFor[cloudwatch.GetMetricDataOutput](), reflect.TypeFor[cloudwatch.DescribeAlarmsOutput](),
		reflect.TypeFor[ecs.SubmitTaskStateChangeInput](),
	} {
		t.Run(typ.String(), rapid.MakeCheck(func(t *rapid.T) {
			in, back := reflect.New(typ), reflect.New(typ)
			draw(t, s.Of(typ), in.Elem(), 0)
			body, err := encodeCBOR(s, in.Interface())
			if err != nil {
				t.Fatal(err)
			}
			if err := readCBOR(s, body, back.Interface()); err != nil {
				t.Fatalf("%v of %x", err, body)
			}
			if !reflect.DeepEqual(back.Interface(), in.Interface()) {
				t.Fatalf("%x came back as %+v", body, back.Elem())
			}
		}))
	}
}

func TestCBORIsStrict(t *testing.T) {
	s := NewShapes(cloudWatchRules)
	const namespace = "69" + "4e616d657370616365" // "Namespace"
	const metricData = "6a" + "4d65747269634461 7461"
	const timestamp = "69" + "54696d657374616d70"
	for _, c := range []struct{ name, body, want string }{
		{"nothing", "", ""},
		{"an empty map", "a0", ""},
		{"an indefinite map", "bf" + namespace + "6161" + "ff", ""},
		{"text in pieces", "a1" + namespace + "7f61616162ff", ""},
		{"null is left out", "a1" + namespace + "f6", ""},
		{"a whole number as a double", "a1" + metricData + "81a1" + "6556616c7565" + "05", ""},
		{"a short float", "a1" + metricData + "81a1" + "6556616c7565" + "f93c00", ""},
		{"a timestamp", "a1" + metricData + "81a1" + timestamp + "c11a6553f100", ""},
		{"no map", "80", "The request's body: expected a map."},
		{"cut off", "a1" + namespace, "not valid CBOR"},
		{"two bodies", "a0a0", "not valid CBOR"},
		{"twice", "a2" + namespace + "6161" + namespace + "6162", "not valid CBOR"},
		{"no text for a name", "a10101", "not valid CBOR"},
		{"bad UTF-8", "a1" + namespace + "61ff", "not valid CBOR"},
		{"deep", strings.Repeat("81", 64) + "00", "not valid CBOR"},
		{"an unknown member", "a1" + "61780" + "1", "x: there is no such member"},
		{"a number for text", "a1" + namespace + "01", "Namespace: expected a string."},
		{"null in a list", "a1" + metricData + "81f6", "MetricData[0]: expected a value"},
		{"text for a timestamp", "a1" + metricData + "81a1" + timestamp + "6161", "MetricData[0].Timestamp: expected a timestamp"},
		{"a number for a timestamp", "a1" + metricData + "81a1" + timestamp + "01", "MetricData[0].Timestamp: expected a timestamp"},
		{"no number for a timestamp", "a1" + metricData + "81a1" + timestamp + "c1f97e00", "MetricData[0].Timestamp: expected a timestamp"},
		{
			"half a resolution", "a1" + metricData + "81a1" + "7153746f726167655265736f6c7574696f6e" + "f93800",
			"StorageResolution: expected a whole number",
		},
		{
			"too large", "a1" + metricData + "81a1" + "7153746f726167655265736f6c7574696f6e" + "1b0000000100000000",
			"StorageResolution: expected a whole number of 32 bits",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			body, err := hex.DecodeString(strings.ReplaceAll(c.body, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			err = readCBOR(s, body, new(cloudwatch.PutMetricDataInput))
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzDecodeCBOR checks that no input makes the decoder panic, and that decoded values survive another round trip.
func FuzzDecodeCBOR(f *testing.F) {
	for _, body := range []string{
		"", "a0", "bfff", "a1694e616d6573706163656161", "a16a4d65747269634461746181a16556616c756505", "9f9f9f", "c11a6553f100",
	} {
		b, _ := hex.DecodeString(body)
		f.Add(b)
	}
	s := NewShapes(cloudWatchRules)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, in := range []any{&cloudwatch.PutMetricDataInput{}, &cloudwatch.PutMetricAlarmInput{}, &cloudwatch.GetMetricDataInput{}} {
			if readCBOR(s, body, in) != nil {
				continue
			}
			once, err := encodeCBOR(s, in)
			if err != nil {
				t.Fatal(err)
			}
			second := reflect.New(reflect.TypeOf(in).Elem()).Interface()
			if err := readCBOR(s, once, second); err != nil {
				t.Fatalf("%v of %x", err, once)
			}
			if twice, _ := encodeCBOR(s, second); string(twice) != string(once) {
				t.Fatalf("%x became %x", once, twice)
			}
		}
	})
}
