package acs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// TestTypes pins the names on the wire, which Amazon's agent expects.
func TestTypes(t *testing.T) {
	for _, name := range []string{
		"HeartbeatMessage", "HeartbeatAckRequest", "PayloadMessage", "AckRequest", "NackRequest", "TaskManifestMessage",
		"TaskStopVerificationMessage", "TaskStopVerificationAck", "IAMRoleCredentialsMessage", "IAMRoleCredentialsAckRequest",
		"PublishMetricsRequest", "AckPublishMetric", "PublishHealthRequest", "AckPublishHealth",
		"PublishInstanceStatusRequest", "AckPublishInstanceStatus",
		"PintleNodeInventory", "PintleTaskNetwork", "PintleTaskRules", "PintlePrefetch", "PintleDeleteVolumes", "PintleVolumesDeleted", "PintleInstance", "PintleGPUFault", "PintleGPUTelemetry",
	} {
		m, err := Decode([]byte(`{"type":"` + name + `","message":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := reflect.TypeOf(m).Elem().Name(); got != name {
			t.Errorf("%s is decoded as a %s", name, got)
		}
	}
}

func TestEncode(t *testing.T) {
	for _, c := range []struct {
		give Message
		want string
	}{
		{&HeartbeatMessage{MessageID: "m", Healthy: true}, `{"type":"HeartbeatMessage","message":{"messageId":"m","healthy":true}}`},
		{&HeartbeatMessage{}, `{"type":"HeartbeatMessage","message":{"healthy":false}}`},
		{&HeartbeatMessage{IntervalMS: 8000}, `{"type":"HeartbeatMessage","message":{"healthy":false,"intervalMs":8000}}`},
		{
			&NackRequest{AckRequest{"c", "i", "m"}, "no"},
			`{"type":"NackRequest","message":{"cluster":"c","containerInstance":"i","messageId":"m","reason":"no"}}`,
		},
		{
			&TaskStopVerificationAck{MessageID: "m", GeneratedAt: 7, StopTasks: []TaskIdentifier{
				{TaskArn: "t", DesiredStatus: "STOPPED", TaskClusterArn: "c"},
			}},
			`{"type":"TaskStopVerificationAck","message":{"messageId":"m","generatedAt":7,"stopTasks":` +
				`[{"taskArn":"t","desiredStatus":"STOPPED","taskClusterArn":"c"}]}}`,
		},
		{
			&IAMRoleCredentialsMessage{
				MessageID:       "m",
				TaskArn:         "t",
				RoleType:        TaskRole,
				RoleCredentials: &IAMRoleCredentials{"i", "a", "s", "n", "e", "r"},
			},
			`{"type":"IAMRoleCredentialsMessage","message":{"messageId":"m","taskArn":"t","roleType":"TaskApplication","roleCredentials":` +
				`{"credentialsId":"i","accessKeyId":"a","secretAccessKey":"s","sessionToken":"n","expiration":"e","roleArn":"r"}}}`,
		},
		{
			&PintleGPUTelemetry{[]GPULoad{{ID: "GPU-0", UtilizationPct: new(50.0), Simulated: true, XIDErrors: []uint64{79}}}},
			`{"type":"PintleGPUTelemetry","message":{"gpus":[{"id":"GPU-0","utilizationPct":50,"memoryUsedMiB":0,"memoryMiB":0,` +
				`"temperatureC":0,"powerW":0,"simulated":true,"xidErrors":[79]}]}}`,
		},
	} {
		got, err := Encode(c.give)
		if err != nil || string(got) != c.want {
			t.Errorf("%T: %v\n got %s\nwant %s", c.give, err, got, c.want)
		}
		back, err := Decode(got)
		if err != nil || !reflect.DeepEqual(back, c.give) {
			t.Errorf("%T comes back as %+v, %v", c.give, back, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, give := range map[string]string{
		"nothing":           ``,
		"no JSON":           `hello`,
		"a list":            `[]`,
		"two frames":        `{"type":"AckRequest","message":{}}{}`,
		"no message":        `{"type":"AckRequest"}`,
		"a message of text": `{"type":"AckRequest","message":"ok"}`,
		"a wrong member":    `{"type":"HeartbeatMessage","message":{"healthy":"yes"}}`,
		"too much":          `{"type":"AckRequest","message":{"messageId":"` + strings.Repeat("x", MaxFrame) + `"}}`,
	} {
		if m, err := Decode([]byte(give)); err == nil {
			t.Errorf("%s: got %+v", name, m)
		}
	}
}

func TestDecodeUnknownType(t *testing.T) {
	_, err := Decode([]byte(`{"type":"StageUpdateMessage","message":{"messageId":"m"}}`))
	unknown, ok := errors.AsType[*UnknownType](err)
	if !ok || unknown.Type != "StageUpdateMessage" {
		t.Errorf("got %v", err)
	}
}

// TestDecodeUnknownMembers: members that this version doesn't know are ignored.
func TestDecodeUnknownMembers(t *testing.T) {
	m, err := Decode([]byte(`{"type":"PublishHealthRequest","more":1,"message":{
		"timestamp":1700000000.25,"metadata":{"cluster":"c","requestId":"r"},
		"tasks":[{"clusterArn":"c","taskArn":"t","containers":[
			{"containerName":"main","healthStatus":"HEALTHY","statusSince":1700000000,"statusMessage":"ok"}]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &PublishHealthRequest{
		Metadata:  MetricsMetadata{Cluster: "c"},
		Timestamp: 1700000000.25,
		Tasks:     []TaskHealth{{"t", []ContainerHealth{{"main", "HEALTHY", 1700000000}}}},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v", m)
	}
}

// TestDecodeAnyOrder: a frame is the same in whatever order, and with whatever else, its members come.
func TestDecodeAnyOrder(t *testing.T) {
	for _, give := range []string{
		`{"type":"AckRequest","message":{"messageId":"m"}}`,
		` { "type" : "AckRequest" , "message" : {"messageId":"m"} } `,
		`{"message":{"messageId":"m"},"type":"AckRequest"}`,
		`{"type":"AckRequest","message":{"messageId":"m"},"more":{}}`,
		`{"type":"AckRequest","message":{"messageId":"n"},"message":{"messageId":"m"}}`,
		`{"type":"HeartbeatMessage","message":{"messageId":"m"},"type":"AckRequest"}`,
	} {
		if m, err := Decode([]byte(give)); err != nil || !reflect.DeepEqual(m, &AckRequest{MessageID: "m"}) {
			t.Errorf("%s: got %+v, %v", give, m, err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	m := &PintleGPUTelemetry{}
	for i := range 8 {
		m.GPUs = append(m.GPUs, GPULoad{ID: fmt.Sprint("GPU-", i), MemoryUsedMiB: 12000})
	}
	frame, err := Encode(m)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		if _, err := Decode(frame); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzDecode: a decoded message can be encoded, and decodes to the same again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"HeartbeatMessage","message":{"messageId":"m","healthy":true}}`))
	f.Add([]byte(`{"type":"PayloadMessage","message":{"seqNum":1,"tasks":[` +
		`{"arn":"t","cpu":0.25,"containers":[{"name":"main","environment":{"A":"b"}}]}]}}`))
	f.Add([]byte(`{"type":"PintleGPUTelemetry","message":{"gpus":[{"id":"GPU-0","xidErrors":[]}]}}`))
	f.Add([]byte(`{"type":"AckRequest","message":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		first, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(first)
		if err != nil && len(first) <= MaxFrame {
			t.Fatalf("%s: %v", first, err)
		}
		second, err := Encode(again)
		if err != nil || string(first) != string(second) {
			t.Fatalf("%v\n%s\n%s", err, first, second)
		}
	})
}

func TestSigned(t *testing.T) {
	body := []byte(`{"type":"AckPublishMetric","message":{}}`)
	give := http.Header{
		"X-Amz-Date":    {"20261121T060000Z"},
		"Authorization": {"AWS4-HMAC-SHA256 Credential=a/b, Signature=c"},
		"Host":          {"localhost:4566"},
	}
	b := EncodeSigned(give, body)
	want := "Authorization: AWS4-HMAC-SHA256 Credential=a/b, Signature=c\r\n" +
		"Host: localhost:4566\r\n" +
		"X-Amz-Date: 20261121T060000Z\r\n\r\n" + string(body)
	if string(b) != want {
		t.Errorf("got %q", b)
	}
	h, got, err := DecodeSigned(b)
	if err != nil || !reflect.DeepEqual(h, give) || string(got) != string(body) {
		t.Errorf("got %v, %s, %v", h, got, err)
	}
}

func TestDecodeSigned(t *testing.T) {
	for _, c := range []struct {
		name   string
		give   string
		header http.Header // nil if it is refused
		body   string
	}{
		{
			"names of any case",
			"authorization:a\r\nx-AMZ-date: b \r\n\r\n{}",
			http.Header{"Authorization": {"a"}, "X-Amz-Date": {"b"}},
			"{}",
		},
		{"a value with a colon", "Host: h:1\r\n\r\n{}", http.Header{"Host": {"h:1"}}, "{}"},
		{"the first blank line counts", "Host: h\r\n\r\n{\"a\":\r\n\r\n1}", http.Header{"Host": {"h"}}, "{\"a\":\r\n\r\n1}"},
		{"no header", `{"a":1}`, http.Header{}, `{"a":1}`},
		{"no header, blank lines in the message", "{\r\n\r\n}", http.Header{}, "{\r\n\r\n}"},
		{"no end of the header", "Host: h\r\n{}", nil, ""},
		{"a line without a colon", "Host\r\n\r\n{}", nil, ""},
		{"a long header", "Host: " + strings.Repeat("h", maxHeader) + "\r\n\r\n{}", nil, ""},
		{"nothing", "", nil, ""},
	} {
		h, body, err := DecodeSigned([]byte(c.give))
		if (err != nil) != (c.header == nil) || !reflect.DeepEqual(h, c.header) || string(body) != c.body {
			t.Errorf("%s: got %v, %q, %v", c.name, h, body, err)
		}
	}
}

func FuzzDecodeSigned(f *testing.F) {
	f.Add([]byte("Host: h\r\nX-Amz-Date: d\r\n\r\n{}"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, body, err := DecodeSigned(b)
		if err != nil || len(h) == 0 {
			return
		}
		again, same, err := DecodeSigned(EncodeSigned(h, body))
		if err != nil && json.Valid(body) {
			t.Fatalf("%q: %v", b, err)
		}
		if err == nil && (!reflect.DeepEqual(h, again) || string(body) != string(same)) {
			t.Fatalf("%q: %v %q, again %v %q", b, h, body, again, same)
		}
	})
}
