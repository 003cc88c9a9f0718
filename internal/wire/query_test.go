package wire_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// fakeSTS returns the caller's ARN, and implements AssumeRole with a function.
type fakeSTS struct {
	assumeRole func(*sts.AssumeRoleInput) (*sts.AssumeRoleOutput, error)
}

func (fakeSTS) GetCallerIdentity(ctx context.Context, _ *sts.GetCallerIdentityInput) (*sts.GetCallerIdentityOutput, error) {
	return &sts.GetCallerIdentityOutput{Account: aws.String("000000000000"), Arn: aws.String(call.From(ctx).Principal)}, nil
}

func (f fakeSTS) AssumeRole(_ context.Context, in *sts.AssumeRoleInput) (*sts.AssumeRoleOutput, error) {
	return f.assumeRole(in)
}

func (f fakeSTS) Operations() []call.Operation {
	return []call.Operation{
		call.Op("GetCallerIdentity", f.GetCallerIdentity),
		call.Op("AssumeRole", f.AssumeRole),
	}
}

// unchecked returns STS without its model's constraints, for tests that are only about the protocol.
func unchecked(service call.Service) model.API {
	api := wire.STS(service)
	api.Constraints = model.Constraints{}
	return api
}

func TestQueryThroughTheSDK(t *testing.T) {
	in := &sts.AssumeRoleInput{
		RoleArn:           aws.String("arn:aws:iam::000000000000:role/a"),
		RoleSessionName:   aws.String("s & <t>"),
		DurationSeconds:   aws.Int32(900),
		PolicyArns:        []types.PolicyDescriptorType{{Arn: aws.String("p1")}, {Arn: aws.String("p2")}},
		Tags:              []types.Tag{{Key: aws.String("k"), Value: aws.String("")}},
		TransitiveTagKeys: []string{},
	}
	expires := time.UnixMilli(1700000000123).UTC()
	out := &sts.AssumeRoleOutput{Credentials: &types.Credentials{
		AccessKeyId:     aws.String("ASIA"),
		SecretAccessKey: aws.String("<&>\r\n\"é"),
		SessionToken:    aws.String("t"),
		Expiration:      &expires,
	}}
	service := fakeSTS{assumeRole: func(got *sts.AssumeRoleInput) (*sts.AssumeRoleOutput, error) {
		if !reflect.DeepEqual(got, in) {
			t.Errorf("the service got %+v", got)
		}
		return out, nil
	}}
	client := sts.NewFromConfig(config(newHandler(t, wire.Options{}, unchecked(service))))
	got, err := client.AssumeRole(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	out.ResultMetadata = got.ResultMetadata
	if !reflect.DeepEqual(got, out) {
		t.Errorf("the client got %+v", got.Credentials)
	}
}

func TestQueryErrorsThroughTheSDK(t *testing.T) {
	service := fakeSTS{assumeRole: func(*sts.AssumeRoleInput) (*sts.AssumeRoleOutput, error) {
		return nil, &types.MalformedPolicyDocumentException{Message: aws.String("a < b")}
	}}
	client := sts.NewFromConfig(config(newHandler(t, wire.Options{}, unchecked(service))))
	_, err := client.AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String("r"), RoleSessionName: aws.String("s")})
	var malformed *types.MalformedPolicyDocumentException
	if !errors.As(err, &malformed) || malformed.ErrorMessage() != "a < b" {
		t.Errorf("got %v", err)
	}
	_, err = client.GetSessionToken(t.Context(), nil)
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "NotImplemented" {
		t.Errorf("got %v", err)
	}
}

// TestQueryStatuses checks that an error has its status from the model, which the SDK's structs lack. An error's own fault still
// counts.
func TestQueryStatuses(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{&types.RegionDisabledException{Message: aws.String("no")}, http.StatusForbidden},
		{account.Refuse("RegionDisabledException", "no"), http.StatusForbidden},
		{account.RefuseWith(http.StatusNotFound, "RegionDisabledException", "no"), http.StatusNotFound},
		{&types.MalformedPolicyDocumentException{Message: aws.String("no")}, http.StatusBadRequest},
		{&smithy.GenericAPIError{Code: "Broken", Fault: smithy.FaultServer}, http.StatusInternalServerError},
	} {
		h := newHandler(t, wire.Options{}, wire.STS(fakeSTS{assumeRole: func(*sts.AssumeRoleInput) (*sts.AssumeRoleOutput, error) {
			return nil, c.err
		}}))
		w := httptest.NewRecorder()
		const form = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn:aws:iam::000000000000:role/a&RoleSessionName=session"
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://sts/", strings.NewReader(form)))
		if w.Code != c.want {
			t.Errorf("%v: got %d %s", c.err, w.Code, w.Body)
		}
	}
}

func TestFormIsStrict(t *testing.T) {
	h := newHandler(t, wire.Options{}, unchecked(fakeSTS{assumeRole: func(*sts.AssumeRoleInput) (*sts.AssumeRoleOutput, error) {
		return &sts.AssumeRoleOutput{}, nil
	}}))
	for _, c := range []struct{ name, form, want string }{
		{"nothing", "", ""},
		{"a list", "Tags.member.1.Key=a&Tags.member.2.Key=b", ""},
		{"a flattened list", "Tags.1.Key=a&Tags.2.Key=b", ""},
		{"a list with a gap", "Tags.member.1.Key=a&Tags.member.7.Key=b", ""},
		{"an empty list", "Tags=", ""},
		{"an unknown parameter", "Tag=1", "Tag: there is no such parameter."},
		{"an unknown parameter within", "Tags.member.1.Ky=1", "Tags.1.Ky: there is no such parameter."},
		{"twice", "Policy=a&Policy=b", "Policy comes more than once."},
		{"no number", "DurationSeconds=x", "DurationSeconds: expected a whole number."},
		{"no UTF-8", "Policy=a%FF", "Policy: expected text in UTF-8."},
		{"too large", "DurationSeconds=2147483648", "DurationSeconds: expected a whole number."},
		{"a list without numbers", "Tags.member.x.Key=1", "Tags.member.x is not numbered."},
		{"a list from 0", "Tags.member.0.Key=1", "Tags.member.0 is not numbered."},
		{"deep", strings.Repeat("a.", 65) + "=1", "A parameter's name has more than 64 dots."},
		{"a scalar with members", "Policy.A=1", "Policy: expected one value."},
		{"a list of scalars with members", "TransitiveTagKeys.member.1.A=1", "TransitiveTagKeys.1: expected one value."},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			form := "Action=AssumeRole&Version=2011-06-15&" + c.form
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://sts/", strings.NewReader(form)))
			if c.want == "" {
				if w.Code != http.StatusOK {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
				return
			}
			want := "<Code>MalformedInput</Code><Message>" + c.want + "</Message>"
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

func TestQueryAnswer(t *testing.T) {
	h := newHandler(t, wire.Options{}, unchecked(fakeSTS{}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://sts/?Action=GetCallerIdentity", nil))
	id := w.Header().Get("x-amzn-RequestId")
	want := `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>` +
		`<Account>000000000000</Account><Arn></Arn></GetCallerIdentityResult>` +
		`<ResponseMetadata><RequestId>` + id + `</RequestId></ResponseMetadata></GetCallerIdentityResponse>`
	if w.Body.String() != want || w.Header().Get("Content-Type") != "text/xml" {
		t.Errorf("got %s", w.Body)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://sts/", strings.NewReader("Action=Go")))
	want = `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>InvalidAction</Code>` +
		`<Message>AWS STS has no operation "Go".</Message></Error><RequestId>` + w.Header().Get("x-amzn-RequestId") +
		`</RequestId></ErrorResponse>`
	if w.Body.String() != want {
		t.Errorf("got %s", w.Body)
	}
}

// TestInputsAreCheckedBeforeTheServiceSeesThem checks that input that breaks the model's constraints is refused with AWS's message,
// and that the service isn't called.
func TestInputsAreCheckedBeforeTheServiceSeesThem(t *testing.T) {
	service := fakeSTS{assumeRole: func(*sts.AssumeRoleInput) (*sts.AssumeRoleOutput, error) {
		t.Error("the service was called")
		return nil, nil
	}}
	client := sts.NewFromConfig(config(newHandler(t, wire.Options{}, wire.STS(service))))
	_, err := client.AssumeRole(t.Context(), &sts.AssumeRoleInput{
		RoleArn:         aws.String("arn:aws:iam::000000000000:role/a"),
		RoleSessionName: aws.String("a b"),
		DurationSeconds: aws.Int32(60),
	})
	var refused smithy.APIError
	if !errors.As(err, &refused) || refused.ErrorCode() != "ValidationError" || refused.ErrorMessage() != "2 validation errors detected: "+
		"Value '60' at 'durationSeconds' failed to satisfy constraint: Member must have value greater than or equal to 900; "+
		`Value 'a b' at 'roleSessionName' failed to satisfy constraint: Member must satisfy regular expression pattern: [\w+=,.@-]*` {
		t.Errorf("got %v", err)
	}
}
