package wire_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// greeter is a small REST-JSON API.
type greeter struct{ caller *call.Call }

type greetInput struct {
	Name    *string
	Loud    *bool
	TagKeys []string
	Token   *string
	Words   []string
	Options *greetOptions
}

type greetOptions struct {
	Color *string
	Until *time.Time
}

type greetOutput struct {
	Greeting *string
	Count    int32
	ETag     *string
}

type describeInput struct{ All *bool }

type describeOutput struct{ Greetings []greetOptions }

func (g *greeter) Greet(ctx context.Context, in *greetInput) (*greetOutput, error) {
	*g.caller = call.From(ctx)
	if *in.Name == "nobody" {
		return nil, &smithy.GenericAPIError{Code: "NobodyException", Message: "There is nobody."}
	}
	color := ""
	if in.Options != nil {
		color = *in.Options.Color
	}
	text := fmt.Sprintf("%s %t %q %s %q %s", *in.Name, aws.ToBool(in.Loud), in.TagKeys, aws.ToString(in.Token), in.Words, color)
	return &greetOutput{Greeting: &text, Count: int32(len(in.Words)), ETag: aws.String("e")}, nil
}

func (g *greeter) DescribeGreetings(context.Context, *describeInput) (*describeOutput, error) {
	return &describeOutput{Greetings: []greetOptions{{Color: aws.String("red"), Until: aws.Time(time.UnixMilli(1500))}}}, nil
}

func (g *greeter) Operations() []call.Operation {
	return []call.Operation{
		call.Op("Greet", g.Greet),
		call.Op("DescribeGreetings", g.DescribeGreetings),
	}
}

func greeterAPI(g *greeter) model.API {
	return model.API{
		Name:       "greeter",
		Title:      "Greeter",
		Protocols:  []model.Protocol{model.RESTJSON},
		CamelCase:  true,
		MaxBody:    1000,
		Statuses:   map[string]int{"NobodyException": http.StatusNotFound},
		Operations: []string{"Greet", "DescribeGreetings", "Forget"},
		Routes: []model.Route{
			{Operation: "Greet", Method: "PUT", Path: "/v1/greet/{name}", Status: 201},
			{Operation: "Forget", Method: "DELETE", Path: "/v1/greet/{name}", Status: 200},
			{Operation: "DescribeGreetings", Method: "POST", Path: "/v1/describegreetings", Status: 200},
		},
		Places: map[string]model.Place{
			"greetInput.Name":    {In: model.InPath, Name: "name"},
			"greetInput.Loud":    {In: model.InQuery, Name: "loud"},
			"greetInput.TagKeys": {In: model.InQuery, Name: "tagKeys"},
			"greetInput.Token":   {In: model.InHeader, Name: "x-token"},
			"greetOutput.ETag":   {In: model.InHeader, Name: "ETag"},
		},
		Constraints: model.Constraints{Code: "ValidationException", Table: "greetInput{\tName!:name\nname\"\t1\t20\n"},
		Service:     g,
	}
}

func TestRESTJSON(t *testing.T) {
	g := &greeter{new(call.Call)}
	h := newHandler(t, wire.Options{}, wire.S3(&echo{}), greeterAPI(g), wire.STS(fakeSTS{}))
	h.Handle("GET /health", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	scope := func(service string) string {
		return "AWS4-HMAC-SHA256 Credential=AK/20261121/us-east-1/" + service + "/aws4_request, SignedHeaders=host, Signature=00"
	}
	for _, c := range []struct {
		name, method, url, authorization, body string
		status                                 int
		want                                   string
	}{
		{
			"all places", "PUT", "/v1/greet/a?loud=true&tagKeys=x&tagKeys=y,z", "", `{"words":["w"],"options":{"color":"red"}}`, 201,
			`{"greeting":"a true [\"x\" \"y,z\"] token [\"w\"] red","count":1}`,
		},
		{"no body", "PUT", "/v1/greet/a", "", "", 201, `{"greeting":"a false [] token [] ","count":0}`},
		{"an escaped label", "PUT", "/v1/greet/arn%3Aa%2Fb%20c", "", "{}", 201, `"greeting":"arn:a/b c false`},
		{"a time", "POST", "/v1/describegreetings", "", "{}", 200, `{"greetings":[{"color":"red","until":1.500}]}`},
		{"by scope", "PUT", "/v1/greet/a", scope("greeter"), "{}", 201, `"greeting"`},
		{"by host", "PUT", "http://greeter.us-east-1.amazonaws.com/v1/greet/a", "", "{}", 201, `"greeting"`},
		{"an error", "PUT", "/v1/greet/nobody", "", "{}", 404, `{"__type":"NobodyException","message":"There is nobody."}`},
		{"a broken constraint", "PUT", "/v1/greet/" + strings.Repeat("a", 21), "", "{}", 400,
			`at 'name' failed to satisfy constraint: Member must have length less than or equal to 20`},
		{"not here yet", "DELETE", "/v1/greet/a", "", "", 501, `does not implement Forget of Greeter yet`},
		{"no route, by scope", "PUT", "/v2/greet/a", scope("greeter"), "", 404, `"__type":"UnknownOperationException"`},
		{"an empty label", "PUT", "/v1/greet/", scope("greeter"), "", 404, `UnknownOperationException`},
		{"a longer path", "PUT", "/v1/greet/a/b", scope("greeter"), "", 404, `UnknownOperationException`},
		{"an unknown member", "PUT", "/v1/greet/a", "", `{"wrods":[]}`, 400, "wrods: there is no such member"},
		{"a member of the path in the body", "PUT", "/v1/greet/a", "", `{"name":"b"}`, 400, "name: there is no such member"},
		{"a broken parameter", "PUT", "/v1/greet/a?loud=maybe", "", "", 400, `loud is not valid`},
		{"broken JSON", "PUT", "/v1/greet/a", "", "{", 400, "SerializationException"},
		{"too large", "PUT", "/v1/greet/a", "", strings.Repeat(" ", 1001), 413, "RequestEntityTooLargeException"},
		{"a bucket named v1", "GET", "/v1/greet/a", "", "", 200, "body"},
		{"a bucket's key in the other's path", "GET", "/v1/greet/a", scope("s3"), "", 200, "body"},
		{"another API's scope", "PUT", "/v1/greet/a", scope("sts"), "", 400, "<Code>MissingAction</Code>"},
		{"mounted", "GET", "/health", "", "", http.StatusTeapot, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.url, strings.NewReader(c.body))
			r.Header.Set("X-Token", "token")
			if c.authorization != "" {
				r.Header.Set("Authorization", c.authorization)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if c.status == http.StatusCreated && (w.Header().Get("ETag") != "e" || w.Header().Get("Content-Type") != "application/json" ||
				len(w.Header().Get("x-amzn-RequestId")) != 36) {
				t.Errorf("got headers %v", w.Header())
			}
			if c.name == "an error" && w.Header().Get("x-amzn-ErrorType") != "NobodyException" {
				t.Errorf("got headers %v", w.Header())
			}
		})
	}
	if g.caller.Operation != "Greet" || g.caller.Service != "greeter" {
		t.Errorf("the service was called by %+v", g.caller)
	}
}

// TestRESTJSONSignatures checks that the signature covers the path as sent, and the body.
func TestRESTJSONSignatures(t *testing.T) {
	g := &greeter{new(call.Call)}
	h := newHandler(t, wire.Options{Verifier: newVerifier()}, wire.S3(&echo{}), greeterAPI(g))
	const body = `{"words":["w"]}`
	for _, c := range []struct {
		name, body string
		status     int
	}{
		{"as it was signed", body, http.StatusCreated},
		{"another body", "{}", http.StatusBadRequest},
	} {
		r := httptest.NewRequest(http.MethodPut, "http://pintle.test/v1/greet/arn%3Aa%2Fb?loud=true", strings.NewReader(body))
		key := aws.Credentials{AccessKeyID: "AKIAALICE", SecretAccessKey: "secret"}
		hash := sha256.Sum256([]byte(body))
		if err := v4.NewSigner().SignHTTP(t.Context(), key, r, hex.EncodeToString(hash[:]), "greeter", "us-east-1", noon); err != nil {
			t.Fatal(err)
		}
		r.Body = io.NopCloser(strings.NewReader(c.body))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s: got %d %s", c.name, w.Code, w.Body)
		}
	}
	if g.caller.Principal == "" {
		t.Error("the caller has no name")
	}
}
