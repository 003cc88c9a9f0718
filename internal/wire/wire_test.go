package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/document"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// fakeECS implements its operations with the test's functions.
type fakeECS struct {
	runTask          func(context.Context, *ecs.RunTaskInput) (*ecs.RunTaskOutput, error)
	createService    func(context.Context, *ecs.CreateServiceInput) (*ecs.CreateServiceOutput, error)
	describeClusters func(context.Context, *ecs.DescribeClustersInput) (*ecs.DescribeClustersOutput, error)
	submitTaskState  func(context.Context, *ecs.SubmitTaskStateChangeInput) (*ecs.SubmitTaskStateChangeOutput, error)
}

func (f *fakeECS) RunTask(ctx context.Context, in *ecs.RunTaskInput) (*ecs.RunTaskOutput, error) {
	return f.runTask(ctx, in)
}

func (f *fakeECS) CreateService(ctx context.Context, in *ecs.CreateServiceInput) (*ecs.CreateServiceOutput, error) {
	return f.createService(ctx, in)
}

func (f *fakeECS) DescribeClusters(ctx context.Context, in *ecs.DescribeClustersInput) (*ecs.DescribeClustersOutput, error) {
	return f.describeClusters(ctx, in)
}

func (f *fakeECS) SubmitTaskStateChange(ctx context.Context, in *ecs.SubmitTaskStateChangeInput) (*ecs.SubmitTaskStateChangeOutput, error) {
	return f.submitTaskState(ctx, in)
}

func (f *fakeECS) Operations() []call.Operation {
	return []call.Operation{
		call.Op("RunTask", f.RunTask),
		call.Op("CreateService", f.CreateService),
		call.Op("DescribeClusters", f.DescribeClusters),
		call.Op("SubmitTaskStateChange", f.SubmitTaskStateChange),
	}
}

func newHandler(t testing.TB, opts wire.Options, apis ...model.API) *wire.Handler {
	t.Helper()
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	h, err := wire.New(opts, apis...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// transport passes a client's requests to a handler without a network.
type transport struct{ handler http.Handler }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	t.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// config returns a configuration with which the SDK's clients call a handler.
func config(h http.Handler) aws.Config {
	return aws.Config{
		Region:           "us-east-1",
		BaseEndpoint:     aws.String("http://pintle.test"),
		Credentials:      credentials.NewStaticCredentialsProvider("AKIATEST", "secret", ""),
		HTTPClient:       &http.Client{Transport: transport{h}},
		RetryMaxAttempts: 1,
	}
}

func newECS(t testing.TB, opts wire.Options, f *fakeECS) *ecs.Client {
	return ecs.NewFromConfig(config(newHandler(t, opts, wire.ECS(f))))
}

func TestECSThroughTheSDK(t *testing.T) {
	started := time.UnixMilli(1700000000123).UTC()
	in := &ecs.RunTaskInput{
		TaskDefinition: aws.String("train:3"),
		ClientToken:    aws.String("token"),
		Count:          aws.Int32(2),
		LaunchType:     types.LaunchTypeExternal,
		Overrides: &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{{
			Name:                 aws.String("mäin \"x\"\n"),
			Command:              []string{},
			Environment:          []types.KeyValuePair{{Name: aws.String("A"), Value: aws.String("<&>\x01")}},
			ResourceRequirements: []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("4")}},
		}}},
	}
	out := &ecs.RunTaskOutput{
		Failures: []types.Failure{},
		Tasks: []types.Task{{
			TaskArn:   aws.String("arn:aws:ecs:us-east-1:000000000000:task/default/1"),
			StartedAt: &started,
			Version:   7,
			Containers: []types.Container{{
				ExitCode: aws.Int32(-1),
				GpuIds:   []string{"GPU-0", "GPU-1"},
			}},
		}},
	}
	client := newECS(t, wire.Options{}, &fakeECS{runTask: func(_ context.Context, got *ecs.RunTaskInput) (*ecs.RunTaskOutput, error) {
		if !reflect.DeepEqual(got, in) {
			t.Errorf("the service got %+v", got)
		}
		return out, nil
	}})
	got, err := client.RunTask(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	out.ResultMetadata = got.ResultMetadata
	if !reflect.DeepEqual(got, out) {
		t.Errorf("the client got %+v", got)
	}
}

func TestDocumentsThroughTheSDK(t *testing.T) {
	service := &fakeECS{createService: func(_ context.Context, in *ecs.CreateServiceInput) (*ecs.CreateServiceOutput, error) {
		return &ecs.CreateServiceOutput{Service: &types.Service{
			ServiceName:             in.ServiceName,
			DeploymentConfiguration: in.DeploymentConfiguration,
		}}, nil
	}}
	client := newECS(t, wire.Options{}, service)
	hook := types.DeploymentLifecycleHook{HookDetails: document.NewLazyDocument(map[string]any{"n": 12345678901234567, "s": "x"})}
	out, err := client.CreateService(t.Context(), &ecs.CreateServiceInput{
		ServiceName:             aws.String("web"),
		DeploymentConfiguration: &types.DeploymentConfiguration{LifecycleHooks: []types.DeploymentLifecycleHook{hook}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var details struct {
		N int64  `document:"n"`
		S string `document:"s"`
	}
	if err := out.Service.DeploymentConfiguration.LifecycleHooks[0].HookDetails.UnmarshalSmithyDocument(&details); err != nil {
		t.Fatal(err)
	}
	if details.N != 12345678901234567 || details.S != "x" {
		t.Errorf("got %+v", details)
	}
}

func TestErrorsThroughTheSDK(t *testing.T) {
	var log bytes.Buffer
	var fail func() error
	client := newECS(t, wire.Options{Log: slog.New(slog.NewTextHandler(&log, nil))},
		&fakeECS{describeClusters: func(context.Context, *ecs.DescribeClustersInput) (*ecs.DescribeClustersOutput, error) {
			return nil, fail()
		}})
	for name, c := range map[string]struct {
		fail          func() error
		code, message string
		fault         smithy.ErrorFault
		logged        string
	}{
		"of the model": {
			fail:    func() error { return &types.ClusterNotFoundException{Message: aws.String("Cluster not found.")} },
			code:    "ClusterNotFoundException",
			message: "Cluster not found.",
			fault:   smithy.FaultClient,
		},
		"wrapped": {
			fail: func() error {
				return errors.Join(errors.New("while looking"), &types.ClientException{Message: aws.String("no")})
			},
			code:    "ClientException",
			message: "no",
			fault:   smithy.FaultClient,
		},
		"outside the model": {
			fail:    func() error { return &smithy.GenericAPIError{Code: "Throttled", Message: "a \"quote\"\x00"} },
			code:    "Throttled",
			message: "a \"quote\"\x00",
			fault:   smithy.FaultUnknown,
		},
		"of the server": {
			fail:    func() error { return &types.ServerException{Message: aws.String("full")} },
			code:    "ServerException",
			message: "full",
			fault:   smithy.FaultServer,
			logged:  "full",
		},
		"of Pintle": {
			fail:    func() error { return errors.New("secret inside") },
			code:    "ServerException",
			message: "The request failed inside Pintle. Its log has the reason under this request's id.",
			fault:   smithy.FaultServer,
			logged:  "secret inside",
		},
		"a panic": {
			fail:    func() error { panic("secret inside") },
			code:    "ServerException",
			message: "The request failed inside Pintle. Its log has the reason under this request's id.",
			fault:   smithy.FaultServer,
			logged:  "panic: secret inside",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fail = c.fail
			log.Reset()
			_, err := client.DescribeClusters(t.Context(), nil)
			var api smithy.APIError
			if !errors.As(err, &api) {
				t.Fatalf("got %v", err)
			}
			if api.ErrorCode() != c.code || api.ErrorMessage() != c.message || api.ErrorFault() != c.fault {
				t.Errorf("got %s %q %v", api.ErrorCode(), api.ErrorMessage(), api.ErrorFault())
			}
			if got := log.String(); (got != "") != (c.logged != "") || !strings.Contains(got, c.logged) {
				t.Errorf("logged %q", got)
			}
		})
	}
}

func TestErrorsKeepTheirMembers(t *testing.T) {
	client := newECS(t, wire.Options{}, &fakeECS{runTask: func(context.Context, *ecs.RunTaskInput) (*ecs.RunTaskOutput, error) {
		return nil, &types.ConflictException{ResourceIds: []string{"a", "b"}}
	}})
	_, err := client.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("x")})
	var conflict *types.ConflictException
	if !errors.As(err, &conflict) || !reflect.DeepEqual(conflict.ResourceIds, []string{"a", "b"}) {
		t.Errorf("got %v", err)
	}
}

func TestServicesKnowTheCall(t *testing.T) {
	var got call.Call
	service := &fakeECS{describeClusters: func(ctx context.Context, _ *ecs.DescribeClustersInput) (*ecs.DescribeClustersOutput, error) {
		got = call.From(ctx)
		return &ecs.DescribeClustersOutput{}, nil
	}}
	client := newECS(t, wire.Options{}, service)
	if _, err := client.DescribeClusters(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if len(got.RequestID) != 36 || got.Service != "ecs" || got.Operation != "DescribeClusters" || got.AccessKeyID != "AKIATEST" {
		t.Errorf("got %+v", got)
	}
	if (call.From(t.Context()) != call.Call{}) {
		t.Error("there is a call outside of one")
	}
}

// post sends a body, unchanged, to an ECS operation.
func post(h http.Handler, operation, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113."+operation)
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestInputIsStrict(t *testing.T) {
	h := newHandler(t, wire.Options{}, wire.ECS(&fakeECS{
		runTask: func(context.Context, *ecs.RunTaskInput) (*ecs.RunTaskOutput, error) {
			return &ecs.RunTaskOutput{}, nil
		},
		submitTaskState: func(context.Context, *ecs.SubmitTaskStateChangeInput) (*ecs.SubmitTaskStateChangeOutput, error) {
			return &ecs.SubmitTaskStateChangeOutput{}, nil
		},
	}))
	for _, c := range []struct{ name, operation, body, want string }{
		{"nothing", "RunTask", ``, ""},
		{"an empty object", "RunTask", ` {} `, ""},
		{"null is absent", "RunTask", `{"count":null,"overrides":null,"tags":null}`, ""},
		{"no object", "RunTask", `[]`, "The request's body: expected an object, not a list."},
		{"null", "RunTask", `null`, "The request's body: expected an object, not null."},
		{"no JSON", "RunTask", `{`, "The request's body is not valid JSON: "},
		{"two objects", "RunTask", `{}{}`, "goes on behind its JSON object"},
		{"invalid UTF-8", "RunTask", "{\"group\":\"\xff\"}", "invalid UTF-8"},
		{"a lone surrogate", "RunTask", `{"group":"\ud800"}`, "is not valid JSON"},
		{"a name twice", "RunTask", `{"group":"a","group":"b"}`, "duplicate object member name"},
		{"an unknown member", "RunTask", `{"grp":1}`, "grp: there is no such member in RunTaskInput."},
		{"another case", "RunTask", `{"Group":"a"}`, "Group: there is no such member in RunTaskInput."},
		{"the SDK's own", "RunTask", `{"noSmithyDocumentSerde":{}}`, "noSmithyDocumentSerde: there is no such member"},
		{"an unknown member within", "RunTask", `{"tags":[{"key":"a"},{"k":"b"}]}`, "tags[1].k: there is no such member in Tag."},
		{"an unknown member from a node", "SubmitTaskStateChange", `{"later":{"a":[1]},"containers":[{"later":1}]}`, ""},
		{
			"a wrong type from a node", "SubmitTaskStateChange", `{"containers":[{"exitCode":"1"}]}`,
			"containers[0].exitCode: expected a whole number, not a string.",
		},
		{"a number for a string", "RunTask", `{"group":1}`, "group: expected a string, not a number."},
		{"a boolean for a string", "RunTask", `{"group":true}`, "group: expected a string, not true."},
		{"an object for a string", "RunTask", `{"group":{"a":1}}`, "group: expected a string, not an object."},
		{"a string for a number", "RunTask", `{"count":"1"}`, "count: expected a whole number, not a string."},
		{"a fraction", "RunTask", `{"count":1.5}`, "count: expected a whole number of 32 bits, not the number 1.5."},
		{"too large", "RunTask", `{"count":2147483648}`, "count: expected a whole number of 32 bits, not the number 2147483648."},
		{"the largest", "RunTask", `{"count":2147483647}`, ""},
		{"the smallest", "RunTask", `{"count":-2147483648}`, ""},
		{"far too large", "RunTask", `{"count":99999999999999999999}`, "count: expected a whole number of 32 bits"},
		{
			"a string for a boolean", "RunTask", `{"enableExecuteCommand":"true"}`,
			"enableExecuteCommand: expected true or false, not a string.",
		},
		{"a string for a list", "RunTask", `{"tags":"a"}`, "tags: expected a list, not a string."},
		{"a list for a structure", "RunTask", `{"overrides":[]}`, "overrides: expected an object, not a list."},
		{"null in a list", "RunTask", `{"tags":[null]}`, "tags[0]: expected an object, not null."},
		{
			"a string for a timestamp", "SubmitTaskStateChange", `{"pullStartedAt":"2026"}`,
			"pullStartedAt: expected a timestamp in seconds since 1970, not a string.",
		},
		{"a timestamp", "SubmitTaskStateChange", `{"pullStartedAt":1.7e9}`, ""},
		{"a timestamp beyond time", "SubmitTaskStateChange", `{"pullStartedAt":1e300}`, "pullStartedAt: expected a timestamp"},
		{
			"a small body of many structs", "RunTask", `{"tags":[{}` + strings.Repeat(",{}", 1<<16) + `]}`,
			"cannot have more than 65536 members",
		},
		{
			"deep", "SubmitTaskStateChange", `{"later":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
			"exceeded max depth",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := post(h, c.operation, c.body)
			got := w.Body.String()
			if c.want == "" {
				if w.Code != http.StatusOK || got != "{}" {
					t.Errorf("got %d %s", w.Code, got)
				}
				return
			}
			if w.Code != http.StatusBadRequest || !strings.HasPrefix(got, `{"__type":"SerializationException","message":"`) ||
				!strings.Contains(got, c.want) {
				t.Errorf("got %d %s", w.Code, got)
			}
		})
	}
}

func TestRouting(t *testing.T) {
	h := newHandler(t, wire.Options{}, wire.ECS(&fakeECS{
		describeClusters: func(context.Context, *ecs.DescribeClustersInput) (*ecs.DescribeClustersOutput, error) {
			return &ecs.DescribeClustersOutput{}, nil
		},
	}), wire.STS(fakeSTS{}))
	h.Handle("GET /health", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "well") //nolint:errcheck // writing to a recorder can't fail
	}))

	const target = "AmazonEC2ContainerServiceV20141113.DescribeClusters"
	signed := func(service string) string {
		return "AWS4-HMAC-SHA256 Credential=AK/20261121/us-east-1/" + service + "/aws4_request, SignedHeaders=host, Signature=00"
	}
	for _, c := range []struct {
		name, method, url string
		header            map[string]string
		body              string
		status            int
		want              string
	}{
		{"by target", "POST", "http://x/", map[string]string{"X-Amz-Target": target}, "{}", 200, "{}"},
		{
			"any charset", "POST", "http://x/",
			map[string]string{"X-Amz-Target": target, "Content-Type": "application/json; charset=utf-8"}, "{}", 200, "{}",
		},
		{
			"a form with a target", "POST", "http://x/",
			map[string]string{"X-Amz-Target": target, "Content-Type": "application/x-www-form-urlencoded"}, "{}", 415,
			"UnsupportedMediaTypeException",
		},
		{"GET with a target", "GET", "http://x/", map[string]string{"X-Amz-Target": target}, "", 400, "UnknownOperationException"},
		{
			"another service's target", "POST", "http://x/", map[string]string{"X-Amz-Target": "DynamoDB_20120810.GetItem"}, "{}", 400,
			"UnknownOperationException",
		},
		{
			"no operation", "POST", "http://x/", map[string]string{"X-Amz-Target": "AmazonEC2ContainerServiceV20141113"}, "{}", 400,
			"UnknownOperationException",
		},
		{
			"an unknown operation", "POST", "http://x/", map[string]string{"X-Amz-Target": "AmazonEC2ContainerServiceV20141113.Run"},
			"{}", 400, `{"__type":"UnknownOperationException","message":"Amazon ECS has no operation \"Run\"."}`,
		},
		{
			"one that is not here yet", "POST", "http://x/",
			map[string]string{"X-Amz-Target": "AmazonEC2ContainerServiceV20141113.CreateDaemon"}, "{}", 501,
			`{"__type":"NotImplementedException","message":"Pintle does not implement CreateDaemon of Amazon ECS yet."}`,
		},
		{
			"too large", "POST", "http://x/", map[string]string{"X-Amz-Target": target}, strings.Repeat(" ", 1<<20+1), 413,
			"RequestEntityTooLargeException",
		},
		{
			"by scope", "POST", "http://x/", map[string]string{"Authorization": signed("sts")}, "Action=GetCallerIdentity", 200,
			"<GetCallerIdentityResponse",
		},
		{
			"by scope, without a target", "POST", "http://x/", map[string]string{"Authorization": signed("ecs")}, "{}", 400,
			"UnknownOperationException",
		},
		{"by host", "POST", "http://sts.us-east-1.amazonaws.com/", nil, "Action=GetCallerIdentity", 200, "<GetCallerIdentityResponse"},
		{"by version", "GET", "http://x/?Action=GetCallerIdentity&Version=2011-06-15", nil, "", 200, "<GetCallerIdentityResponse"},
		{
			"a form of an unknown version", "GET", "http://x/?Action=GetCallerIdentity&Version=2001-01-01", nil, "", 400,
			"UnknownOperationException",
		},
		{
			"an unsigned GET that changes something", "GET", "http://x/?Action=AssumeRole&Version=2011-06-15", nil, "", 403,
			"<Code>MissingAuthenticationToken</Code>",
		},
		{
			"a signed GET that changes something", "GET", "http://x/?Action=AssumeRole&Version=2011-06-15",
			map[string]string{"Authorization": signed("sts")}, "", 400, "<Code>ValidationError</Code>",
		},
		{
			"a GET that changes something, with a signature that anybody can put into a link", "GET",
			"http://x/?Action=AssumeRole&Version=2011-06-15" + presignedBySomebody, nil, "", 403, "<Code>MissingAuthenticationToken</Code>",
		},
		{
			"the same with another method", "HEAD", "http://x/?Action=AssumeRole&Version=2011-06-15" + presignedBySomebody, nil, "", 403,
			"<Code>MissingAuthenticationToken</Code>",
		},
		{
			"a presigned GET that only reads", "GET", "http://x/?Action=GetCallerIdentity&Version=2011-06-15" + presignedBySomebody, nil, "", 200,
			"<GetCallerIdentityResponse",
		},
		{"a form without an action", "POST", "http://sts/", nil, "A=B", 400, "<Code>MissingAction</Code>"},
		{"an unknown action", "POST", "http://sts/", nil, "Action=Go", 400, "<Code>InvalidAction</Code>"},
		{"an action that is not here yet", "POST", "http://sts/", nil, "Action=GetSessionToken", 501, "<Code>NotImplemented</Code>"},
		{"a broken form", "POST", "http://sts/", nil, "Action=%zz", 400, "<Code>MalformedQueryString</Code>"},
		{
			"a form for another service", "POST", "http://x/",
			map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Authorization": signed("iam")},
			"Action=ListRoles&Version=2010-05-08", 501, "</Message></Error>",
		},
		{"no service", "GET", "http://x/", nil, "", 400, "UnknownOperationException"},
		{"a path", "GET", "http://x//a/../b", nil, "", 400, "UnknownOperationException"},
		{"mounted", "GET", "http://x/health", nil, "", 200, "well"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.url, strings.NewReader(c.body))
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if c.name != "mounted" && len(w.Header().Get("x-amzn-RequestId")) != 36 {
				t.Errorf("got headers %v", w.Header())
			}
		})
	}
}

// presignedBySomebody is a signature in a query.
const presignedBySomebody = "&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a/20260101/us-east-1/sts/aws4_request"

// TestOverAConnection sends a whole request over a real connection.
func TestOverAConnection(t *testing.T) {
	server := httptest.NewServer(newHandler(t, wire.Options{}, wire.ECS(&fakeECS{
		describeClusters: func(context.Context, *ecs.DescribeClustersInput) (*ecs.DescribeClustersOutput, error) {
			return &ecs.DescribeClustersOutput{Clusters: []types.Cluster{{ClusterName: aws.String("default")}}}, nil
		},
	})))
	defer server.Close()
	r, _ := http.NewRequest(http.MethodPost, server.URL, strings.NewReader("{}"))
	r.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113.DescribeClusters")
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // the body was only read
	body, _ := io.ReadAll(answer.Body)
	const want = `{"clusters":[{"activeServicesCount":0,"clusterName":"default","pendingTasksCount":0,` +
		`"registeredContainerInstancesCount":0,"runningTasksCount":0}]}`
	if string(body) != want || answer.ContentLength != int64(len(want)) ||
		answer.Header.Get("Content-Type") != "application/x-amz-json-1.1" {
		t.Errorf("got %v %s", answer.Header, body)
	}
}

// table is a service with only a table of operations.
type table []call.Operation

func (t table) Operations() []call.Operation { return t }

func TestNewRefuses(t *testing.T) {
	documents := wire.ECS(&fakeECS{})
	documents.NewDocument = nil
	twice := wire.STS(nil)
	runTask := call.Op("RunTask", (&fakeECS{}).RunTask)
	for name, c := range map[string]struct {
		apis []model.API
		want string
	}{
		"an operation of another API": {[]model.API{wire.STS(table{runTask})}, "sts has no operation RunTask, or the service has two"},
		"an operation twice": {
			[]model.API{wire.ECS(table{runTask, runTask})}, "ecs has no operation RunTask, or the service has two",
		},
		"structs without a shape": {[]model.API{documents}, "hookDetails: a document.Interface cannot be put on the wire"},
		"an API twice":            {[]model.API{twice, twice}, `"sts" has no protocol, or comes twice`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := wire.New(wire.Options{}, c.apis...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCoverage(t *testing.T) {
	ecs := wire.ECS(&fakeECS{})
	ecs.Refuses = []string{"SubmitTaskStateChange"}
	got := newHandler(t, wire.Options{}, ecs, wire.STS(nil)).Coverage()
	for _, want := range []string{
		"| Amazon ECS | 3 | ", "| AWS STS | 0 | 11 |", "\n- [x] RunTask\n", "\n- [ ] CreateDaemon\n", "\n- [ ] SubmitTaskStateChange, which says why\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// pipes is a listener with in-memory connections.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestABodyThatNeverComes checks that a request with a stalled body is refused after a minute. That limit doesn't cut off a call
// that takes longer.
func TestABodyThatNeverComes(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: AmazonEC2ContainerServiceV20141113.DescribeClusters\r\n"
	for _, c := range []struct {
		name, request string
		want          int
	}{
		{"half a body", head + "Content-Length: 100\r\n\r\n{", http.StatusBadRequest},
		{"a slow call", head + "Content-Length: 2\r\n\r\n{}", http.StatusOK},
	} {
		synctest.Test(t, func(t *testing.T) {
			service := &fakeECS{
				describeClusters: func(ctx context.Context, _ *ecs.DescribeClustersInput) (*ecs.DescribeClustersOutput, error) {
					time.Sleep(time.Hour)
					return &ecs.DescribeClustersOutput{}, ctx.Err()
				},
			}
			h := newHandler(t, wire.Options{}, wire.ECS(service))
			client, connection := net.Pipe()
			listener := make(pipes, 1)
			listener <- connection
			server := &http.Server{Handler: h}
			go server.Serve(listener)
			go io.WriteString(client, c.request)
			resp, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil || resp.StatusCode != c.want {
				t.Errorf("%s: %v %v", c.name, resp, err)
			}
			client.Close()
			close(listener)
			server.Close()
		})
	}
}
