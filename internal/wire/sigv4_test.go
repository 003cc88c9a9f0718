package wire_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/sign"
)

const (
	alice   = "arn:aws:iam::000000000000:user/alice"
	session = "arn:aws:sts::000000000000:assumed-role/task/1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newVerifier returns a verifier whose clock says noon. It knows alice, a session, and an expired session.
func newVerifier() *sign.Verifier {
	aSession := call.Identity{Principal: session}
	known := map[string]sign.Credential{
		"AKIAALICE": {SecretAccessKey: "secret", Identity: call.Identity{Principal: alice}},
		"ASIATASK":  {SecretAccessKey: "secret", SessionToken: "token", Expires: noon.Add(time.Second), Identity: aSession},
		"ASIAOVER":  {SecretAccessKey: "secret", SessionToken: "token", Expires: noon, Identity: aSession},
	}
	return &sign.Verifier{
		Region: "us-east-1",
		Now:    func() time.Time { return noon },
		Lookup: func(_ context.Context, id, _ string) (sign.Credential, error) {
			c, ok := known[id]
			if !ok {
				return c, sign.ErrUnknownKey
			}
			return c, nil
		},
	}
}

// at signs with another time than now, which the SDK's clients can't do.
type at struct {
	*v4.Signer
	time time.Time
}

func (s at) SignHTTP(
	ctx context.Context, c aws.Credentials, r *http.Request, hash, service, region string, _ time.Time, opts ...func(*v4.SignerOptions),
) error {
	return s.Signer.SignHTTP(ctx, c, r, hash, service, region, s.time, opts...)
}

func TestSignaturesOfTheSDK(t *testing.T) {
	h := newHandler(t, wire.Options{Verifier: newVerifier()}, wire.ECS(&fakeECS{
		describeClusters: func(context.Context, *ecs.DescribeClustersInput) (*ecs.DescribeClustersOutput, error) {
			return &ecs.DescribeClustersOutput{}, nil
		},
	}), wire.STS(fakeSTS{}))
	for _, c := range []struct {
		name               string
		id, secret, token  string
		region             string
		signed             time.Time
		wantJSON, wantForm string
		message            string
	}{
		{"right", "AKIAALICE", "secret", "", "us-east-1", noon, "", "", ""},
		{"right, with a session", "ASIATASK", "secret", "token", "us-east-1", noon, "", "", ""},
		{"a slow clock", "AKIAALICE", "secret", "", "us-east-1", noon.Add(-15 * time.Minute), "", "", ""},
		{
			"too slow", "AKIAALICE", "secret", "", "us-east-1", noon.Add(-16 * time.Minute), "InvalidSignatureException",
			"SignatureDoesNotMatch", "Signature expired",
		},
		{
			"too fast", "AKIAALICE", "secret", "", "us-east-1", noon.Add(16 * time.Minute), "InvalidSignatureException",
			"SignatureDoesNotMatch", "Signature not yet current",
		},
		{"an unknown key", "AKIABOB", "secret", "", "us-east-1", noon, "UnrecognizedClientException", "InvalidClientTokenId", "invalid"},
		{
			"a wrong secret", "AKIAALICE", "guess", "", "us-east-1", noon, "InvalidSignatureException", "SignatureDoesNotMatch",
			"does not match",
		},
		{
			"a session without its token", "ASIATASK", "secret", "", "us-east-1", noon, "UnrecognizedClientException",
			"InvalidClientTokenId", "invalid",
		},
		{
			"a session with another's token", "ASIATASK", "secret", "other", "us-east-1", noon, "UnrecognizedClientException",
			"InvalidClientTokenId", "invalid",
		},
		{
			"a token too many", "AKIAALICE", "secret", "token", "us-east-1", noon, "UnrecognizedClientException",
			"InvalidClientTokenId", "invalid",
		},
		{"a session that is over", "ASIAOVER", "secret", "token", "us-east-1", noon, "ExpiredTokenException", "ExpiredToken", "expired"},
		{
			"another region", "AKIAALICE", "secret", "", "eu-west-1", noon, "InvalidSignatureException", "SignatureDoesNotMatch",
			"region us-east-1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config(h)
			cfg.Region = c.region
			cfg.Credentials = credentials.NewStaticCredentialsProvider(c.id, c.secret, c.token)
			signer := at{v4.NewSigner(), c.signed}
			_, err := ecs.NewFromConfig(cfg, func(o *ecs.Options) { o.HTTPSignerV4 = signer }).DescribeClusters(t.Context(), nil)
			wantError(t, err, c.wantJSON, c.message, http.StatusBadRequest)
			_, err = sts.NewFromConfig(cfg, func(o *sts.Options) { o.HTTPSignerV4 = signer }).GetCallerIdentity(t.Context(), nil)
			wantError(t, err, c.wantForm, c.message, http.StatusForbidden)
		})
	}
}

// TestGlobalServices: the clients of services that are the same in all regions sign with one region wherever they are.
func TestGlobalServices(t *testing.T) {
	verifier := newVerifier()
	verifier.Region = "eu-west-1"
	verifier.Global = map[string]string{"sts": "us-east-1"}
	h := newHandler(t, wire.Options{Verifier: verifier}, wire.ECS(nil), wire.STS(fakeSTS{}))
	for region, want := range map[string]string{"eu-west-1": "", "us-east-1": "", "us-west-2": "SignatureDoesNotMatch"} {
		cfg := config(h)
		cfg.Region = region
		cfg.Credentials = credentials.NewStaticCredentialsProvider("AKIAALICE", "secret", "")
		signer := at{v4.NewSigner(), noon}
		_, err := sts.NewFromConfig(cfg, func(o *sts.Options) { o.HTTPSignerV4 = signer }).GetCallerIdentity(t.Context(), nil)
		wantError(t, err, want, "region eu-west-1", http.StatusForbidden)
		if region == "us-east-1" {
			_, err = ecs.NewFromConfig(cfg, func(o *ecs.Options) { o.HTTPSignerV4 = signer }).DescribeClusters(t.Context(), nil)
			wantError(t, err, "InvalidSignatureException", "region eu-west-1", http.StatusBadRequest)
		}
	}
}

func wantError(t *testing.T, err error, code, message string, status int) {
	t.Helper()
	if code == "" {
		if err != nil {
			t.Errorf("got %v", err)
		}
		return
	}
	var api smithy.APIError
	var answer interface{ HTTPStatusCode() int }
	if !errors.As(err, &api) || api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), message) {
		t.Errorf("want %s, got %v", code, err)
	}
	if !errors.As(err, &answer) || answer.HTTPStatusCode() != status {
		t.Errorf("want status %d, got %v", status, err)
	}
}

func TestServicesKnowWhoSigned(t *testing.T) {
	cfg := config(newHandler(t, wire.Options{Verifier: newVerifier()}, wire.STS(fakeSTS{})))
	cfg.Credentials = credentials.NewStaticCredentialsProvider("AKIAALICE", "secret", "")
	client := sts.NewFromConfig(cfg, func(o *sts.Options) { o.HTTPSignerV4 = at{v4.NewSigner(), noon} })
	out, err := client.GetCallerIdentity(t.Context(), nil)
	if err != nil || *out.Arn != alice {
		t.Errorf("got %v %v", out, err)
	}
}

// TestVerifyFrames checks signatures as nodes make them. A node signs the opening of its web sockets, and each frame of telemetry,
// with the socket's URL.
func TestVerifyFrames(t *testing.T) {
	const url = "http://127.0.0.1:4566/tcs/ws?agentVersion=1.0&cluster=arn%3Aaws%3Aecs%2Fdefault&empty="
	body := []byte(`{"type":"PublishMetricsRequest"}`)
	frame := func(t *testing.T) sign.Signed {
		r := httptest.NewRequest(http.MethodGet, url, nil)
		r.Header.Set("X-Amz-Security-Token", "token")
		hash := sha256.Sum256(body)
		key := aws.Credentials{AccessKeyID: "ASIATASK", SecretAccessKey: "secret", SessionToken: "token"}
		if err := v4.NewSigner().SignHTTP(t.Context(), key, r, hex.EncodeToString(hash[:]), "ecs", "us-east-1", noon); err != nil {
			t.Fatal(err)
		}
		return sign.Signed{
			Method:   r.Method,
			Path:     r.URL.EscapedPath(),
			RawQuery: r.URL.RawQuery,
			Host:     r.Host,
			Header:   r.Header,
			Body:     body,
		}
	}
	const mismatch = "InvalidSignatureException"
	for _, c := range []struct {
		name   string
		change func(*sign.Signed)
		want   string
	}{
		{"as it was signed", func(*sign.Signed) {}, ""},
		{"with a header that nobody signed", func(s *sign.Signed) { s.Header.Set("X-Forwarded-For", "10.0.0.1") }, ""},
		{"another body", func(s *sign.Signed) { s.Body = []byte("{}") }, mismatch},
		{"another method", func(s *sign.Signed) { s.Method = http.MethodPost }, mismatch},
		{"another path", func(s *sign.Signed) { s.Path = "/acs/ws" }, mismatch},
		{"another query", func(s *sign.Signed) { s.RawQuery += "&a=b" }, mismatch},
		{"another host", func(s *sign.Signed) { s.Host = "127.0.0.1" }, mismatch},
		{"a target that nobody signed", func(s *sign.Signed) { s.Header.Set("X-Amz-Target", "A.B") }, mismatch},
		{"an unsigned payload", func(s *sign.Signed) { s.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"); s.Body = nil }, mismatch},
		{"no signature", func(s *sign.Signed) { s.Header.Del("Authorization") }, "MissingAuthenticationTokenException"},
		{"no date", func(s *sign.Signed) { s.Header.Del("X-Amz-Date") }, "IncompleteSignatureException"},
		{"a broken path", func(s *sign.Signed) { s.Path = "/%zz" }, "IncompleteSignatureException"},
		{"another date in the scope", edit("20261121/", "20261120/"), mismatch},
		{"another service", edit("/ecs/", "/sts/"), mismatch},
		{"a signed header that did not come", edit("SignedHeaders=host", "SignedHeaders=gone;host"), mismatch},
		{"host unsigned", edit("SignedHeaders=host;", "SignedHeaders="), mismatch},
		{"another signature", edit("Signature=", "Signature=0"), mismatch},
		{"no SignedHeaders", edit("SignedHeaders", "Headers"), "IncompleteSignatureException"},
		{"a short scope", edit("/aws4_request", ""), "IncompleteSignatureException"},
		{"another algorithm", edit("AWS4-HMAC-SHA256", "Bearer"), "IncompleteSignatureException"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := frame(t)
			c.change(&s)
			caller, err := newVerifier().Verify(t.Context(), "ecs", s)
			if c.want == "" {
				if err != nil || caller.Principal != session || caller.AccessKeyID != "ASIATASK" {
					t.Errorf("got %+v %v", caller, err)
				}
				return
			}
			var api smithy.APIError
			if !errors.As(err, &api) || api.ErrorCode() != c.want || caller != (sign.Caller{}) {
				t.Errorf("got %+v %v", caller, err)
			}
		})
	}
}

func edit(old, with string) func(*sign.Signed) {
	return func(s *sign.Signed) {
		s.Header.Set("Authorization", strings.Replace(s.Header.Get("Authorization"), old, with, 1))
	}
}

func TestPresigned(t *testing.T) {
	h := newHandler(t, wire.Options{Verifier: newVerifier()}, wire.STS(fakeSTS{}))
	cfg := config(h)
	cfg.Credentials = credentials.NewStaticCredentialsProvider("ASIATASK", "secret", "token")
	presign := func(t *testing.T, when time.Time) string {
		r, err := http.NewRequest(http.MethodGet, "http://pintle.test/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires=60", nil)
		if err != nil {
			t.Fatal(err)
		}
		hash := sha256.Sum256(nil)
		key := aws.Credentials{AccessKeyID: "ASIATASK", SecretAccessKey: "secret", SessionToken: "token"}
		url, _, err := v4.NewSigner().PresignHTTP(t.Context(), key, r, hex.EncodeToString(hash[:]), "sts", "us-east-1", when)
		if err != nil {
			t.Fatal(err)
		}
		return url
	}
	for _, c := range []struct {
		name   string
		signed time.Time
		change [2]string
		status int
		want   string
	}{
		{"right", noon, [2]string{}, 200, session},
		{"at its end", noon.Add(-time.Minute), [2]string{}, 200, session},
		{"after its end", noon.Add(-61 * time.Second), [2]string{}, 403, "SignatureDoesNotMatch"},
		{"made to last", noon.Add(-61 * time.Second), [2]string{"X-Amz-Expires=60", "X-Amz-Expires=600"}, 403, "SignatureDoesNotMatch"},
		{"lasting too long", noon, [2]string{"X-Amz-Expires=60", "X-Amz-Expires=604801"}, 400, "IncompleteSignature"},
		{"changed", noon, [2]string{"GetCallerIdentity", "GetSessionToken"}, 403, "SignatureDoesNotMatch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := strings.Replace(presign(t, c.signed), c.change[0], c.change[1], 1)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:4566/", nil)
	r.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113.RunTask")
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	hash := sha256.Sum256([]byte(runTask))
	r.ContentLength = int64(len(runTask))
	key := aws.Credentials{AccessKeyID: "AKIAALICE", SecretAccessKey: "secret"}
	if err := v4.NewSigner().SignHTTP(b.Context(), key, r, hex.EncodeToString(hash[:]), "ecs", "us-east-1", noon); err != nil {
		b.Fatal(err)
	}
	v := newVerifier()
	s := sign.Signed{Method: r.Method, Path: "/", Host: r.Host, Header: r.Header, Body: []byte(runTask)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(b.Context(), "ecs", s); err != nil {
			b.Fatal(err)
		}
	}
}
