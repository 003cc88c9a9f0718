package wire_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/sign"
)

// echo is a small S3 that records what it gets.
type echo struct{ got any }

func (e *echo) PutObject(_ context.Context, in *s3.PutObjectInput) (*s3.PutObjectOutput, error) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	trailer := in.Body.(interface{ Trailer(string) string }).Trailer("x-amz-checksum-crc32")
	e.got = fmt.Sprintf("%s/%s: %s %s%s", *in.Bucket, *in.Key, body, trailer, aws.ToString(in.IfMatch)) +
		aws.ToString(in.ChecksumCRC32) + string(in.ChecksumAlgorithm)
	return &s3.PutObjectOutput{ETag: aws.String(`"e"`)}, nil
}

func (e *echo) GetObject(_ context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	e.got = *in.Bucket + "/" + *in.Key
	return &s3.GetObjectOutput{
		Body:          io.NopCloser(strings.NewReader("body")),
		ContentLength: aws.Int64(4),
		Metadata:      map[string]string{"k": "v"},
	}, nil
}

func (e *echo) PutBucketNotificationConfiguration(
	_ context.Context, in *s3.PutBucketNotificationConfigurationInput,
) (*s3.PutBucketNotificationConfigurationOutput, error) {
	e.got = in.NotificationConfiguration
	return &s3.PutBucketNotificationConfigurationOutput{}, nil
}

func (e *echo) CompleteMultipartUpload(
	_ context.Context, in *s3.CompleteMultipartUploadInput,
) (*s3.CompleteMultipartUploadOutput, error) {
	e.got = fmt.Sprint(*in.ChecksumSHA256, " of ", len(in.MultipartUpload.Parts))
	return &s3.CompleteMultipartUploadOutput{}, nil
}

func (e *echo) GetBucketAcl(context.Context, *s3.GetBucketAclInput) (*s3.GetBucketAclOutput, error) {
	return &s3.GetBucketAclOutput{Owner: &types.Owner{ID: aws.String("o")}, Grants: []types.Grant{{
		Grantee:    &types.Grantee{ID: aws.String("g"), Type: types.TypeCanonicalUser},
		Permission: types.PermissionFullControl,
	}}}, nil
}

func (e *echo) GetBucketLocation(context.Context, *s3.GetBucketLocationInput) (*s3.GetBucketLocationOutput, error) {
	return &s3.GetBucketLocationOutput{LocationConstraint: "eu-west-1"}, nil
}

func (e *echo) Operations() []call.Operation {
	return []call.Operation{
		call.Op("PutObject", e.PutObject),
		call.Op("GetObject", e.GetObject),
		call.Op("PutBucketNotificationConfiguration", e.PutBucketNotificationConfiguration),
		call.Op("CompleteMultipartUpload", e.CompleteMultipartUpload),
		call.Op("GetBucketAcl", e.GetBucketAcl),
		call.Op("GetBucketLocation", e.GetBucketLocation),
	}
}

// serveS3 serves echo. With a verifier, signatures are checked.
func serveS3(t *testing.T, v *sign.Verifier) (*echo, string) {
	t.Helper()
	e := &echo{}
	h, err := wire.New(wire.Options{Verifier: v}, wire.S3(e))
	if err != nil {
		t.Fatal(err)
	}
	h.Handle("/acs/", http.NotFoundHandler())
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return e, server.URL
}

func newS3(endpoint, id, secret, token string) *s3.Client {
	return s3.New(s3.Options{
		Region:           "us-east-1",
		BaseEndpoint:     &endpoint,
		UsePathStyle:     true,
		Credentials:      credentials.NewStaticCredentialsProvider(id, secret, token),
		RetryMaxAttempts: 1,
	})
}

// now returns a verifier with the machine's clock, because the SDK's signer uses that one.
func now() *sign.Verifier {
	v := newVerifier()
	v.Now = nil
	lookup := v.Lookup
	v.Lookup = func(ctx context.Context, id, token string) (sign.Credential, error) {
		c, err := lookup(ctx, id, token)
		if !c.Expires.IsZero() {
			c.Expires = time.Now().Add(time.Minute)
		}
		return c, err
	}
	return v
}

// TestRESTClient drives every part of the protocol with the SDK, signed.
func TestRESTClient(t *testing.T) {
	e, endpoint := serveS3(t, now())
	for _, c := range []*s3.Client{newS3(endpoint, "AKIAALICE", "secret", ""), newS3(endpoint, "ASIATASK", "secret", "token")} {
		key := "../a//b c+ü%41?&=;'~*"
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String("bucket"),
			Key:    &key,
			Body:   strings.NewReader("hello"),
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := "bucket/" + key + ": hello "; e.got != want {
			t.Errorf("put got %q, want %q", e.got, want)
		}
		// A bucket may have the name of one of Pintle's own paths.
		out, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("acs"), Key: aws.String("x")})
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(out.Body); err != nil || string(body) != "body" || out.Metadata["k"] != "v" || e.got != "acs/x" {
			t.Errorf("got %q, %v, %v of %v", body, err, out.Metadata, e.got)
		}
		_, err = c.PutBucketNotificationConfiguration(t.Context(), &s3.PutBucketNotificationConfigurationInput{
			Bucket: aws.String("bucket"),
			NotificationConfiguration: &types.NotificationConfiguration{QueueConfigurations: []types.QueueConfiguration{{
				QueueArn: aws.String("q"),
				Events:   []types.Event{"a", "b"},
				Filter: &types.NotificationConfigurationFilter{Key: &types.S3KeyFilter{FilterRules: []types.FilterRule{{
					Name:  "prefix",
					Value: aws.String("<&\r>"),
				}}}},
			}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		q := e.got.(*types.NotificationConfiguration).QueueConfigurations[0]
		if len(q.Events) != 2 || *q.Filter.Key.FilterRules[0].Value != "<&\r>" {
			t.Errorf("notifications came as %+v", q)
		}
		acl, err := c.GetBucketAcl(t.Context(), &s3.GetBucketAclInput{Bucket: aws.String("bucket")})
		if err != nil || *acl.Owner.ID != "o" || *acl.Grants[0].Grantee.ID != "g" || acl.Grants[0].Grantee.Type != types.TypeCanonicalUser {
			t.Errorf("the ACL is %+v, %v", acl, err)
		}
		location, err := c.GetBucketLocation(t.Context(), &s3.GetBucketLocationInput{Bucket: aws.String("bucket")})
		if err != nil || location.LocationConstraint != "eu-west-1" {
			t.Errorf("the location is %+v, %v", location, err)
		}
		_, err = c.PutBucketAcl(t.Context(), &s3.PutBucketAclInput{Bucket: aws.String("bucket"), ACL: "private"})
		if !strings.Contains(fmt.Sprint(err), "NotImplemented") {
			t.Errorf("what is not implemented says %v", err)
		}
	}
}

// TestRESTSignatures checks the signatures that a verifier must refuse.
func TestRESTSignatures(t *testing.T) {
	_, endpoint := serveS3(t, now())
	sign := func(id, secret string, change func(*http.Request), at time.Time, after func(*http.Request)) *http.Request {
		r, _ := http.NewRequest("PUT", endpoint+"/bucket/key", strings.NewReader("hello"))
		hash := "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
		r.Header.Set("X-Amz-Content-Sha256", hash)
		change(r)
		err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).SignHTTP(t.Context(),
			aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}, r, r.Header.Get("X-Amz-Content-Sha256"), "s3", "us-east-1", at)
		if err != nil {
			t.Fatal(err)
		}
		after(r)
		return r
	}
	none := func(*http.Request) {}
	for _, c := range []struct {
		name, want string
		request    *http.Request
	}{
		{"good", "", sign("AKIAALICE", "secret", none, time.Now(), none)},
		{"wrong secret", "SignatureDoesNotMatch", sign("AKIAALICE", "wrong", none, time.Now(), none)},
		{"unknown key", "InvalidAccessKeyId", sign("AKIABOB", "secret", none, time.Now(), none)},
		{"old", "RequestTimeTooSkewed", sign("AKIAALICE", "secret", none, time.Now().Add(-time.Hour), none)},
		{
			"another body", "XAmzContentSHA256Mismatch",
			sign("AKIAALICE", "secret", none, time.Now(), func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("jello")) }),
		},
		{
			"another path", "SignatureDoesNotMatch",
			sign("AKIAALICE", "secret", none, time.Now(), func(r *http.Request) { r.URL.Path = "/bucket/other" }),
		},
		{
			"another parameter", "SignatureDoesNotMatch",
			sign("AKIAALICE", "secret", none, time.Now(), func(r *http.Request) { r.URL.RawQuery = "x=y" }),
		},
		{
			"a header that is not signed", "AccessDenied",
			sign("AKIAALICE", "secret", none, time.Now(), func(r *http.Request) { r.Header.Set("X-Amz-Acl", "public-read") }),
		},
		{
			"no signature", "AccessDenied",
			sign("AKIAALICE", "secret", none, time.Now(), func(r *http.Request) { r.Header.Del("Authorization") }),
		},
		{"another service", "NotImplementedException", sign("AKIAALICE", "secret", none, time.Now(), func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "/s3/", "/ecs/", 1))
		})},
		{"a made-up kind of stream", "InvalidArgument", sign("AKIAALICE", "secret", func(r *http.Request) {
			r.Header.Set("X-Amz-Content-Sha256", "STREAMING-X")
			r.Header.Set("X-Amz-Decoded-Content-Length", "5")
		}, time.Now(), none)},
	} {
		resp, err := http.DefaultClient.Do(c.request)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if ok := resp.StatusCode == 200; ok != (c.want == "") || !strings.Contains(string(body), c.want) {
			t.Errorf("%s: %d %s, want %s", c.name, resp.StatusCode, body, c.want)
		}
	}
}

// TestRESTRegions: clients that sign for another region are told which one is right, by S3's own codes. Some then sign once more.
func TestRESTRegions(t *testing.T) {
	_, endpoint := serveS3(t, now())
	elsewhere := func(o *s3.Options) { o.Region = "US" }
	client := newS3(endpoint, "AKIAALICE", "secret", "")
	_, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("bucket")}, elsewhere)
	wantError(t, err, "AuthorizationHeaderMalformed", "'US', which is wrong; expecting 'us-east-1'", http.StatusBadRequest)
	p, err := s3.NewPresignClient(client, s3.WithPresignClientFromClientOptions(elsewhere)).
		PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("bucket"), Key: aws.String("key")})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	for _, want := range []string{"<Code>AuthorizationQueryParametersError</Code>", "<Region>us-east-1</Region>"} {
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), want) {
			t.Errorf("presigned: %d %s; want 400 and %s", resp.StatusCode, body, want)
		}
	}
	if got := resp.Header.Get("X-Amz-Bucket-Region"); got != "us-east-1" {
		t.Errorf("the header says that the bucket's region is %q", got)
	}
}

// TestPresignedREST uses valid and invalid presigned URLs of version 4, with and without a verifier.
func TestPresignedREST(t *testing.T) {
	for _, v := range []*sign.Verifier{now(), nil} {
		e, endpoint := serveS3(t, v)
		p := s3.NewPresignClient(newS3(endpoint, "AKIAALICE", "secret", ""))
		put, err := p.PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: aws.String("a b/ü")})
		if err != nil {
			t.Fatal(err)
		}
		get, err := p.PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("bucket"), Key: aws.String("a b/ü")})
		if err != nil {
			t.Fatal(err)
		}
		if status := do(t, "PUT", put.URL, put.SignedHeader, "hello"); status != 200 || e.got != "bucket/a b/ü: hello " {
			t.Errorf("presigned put: %d, got %v", status, e.got)
		}
		if status := do(t, "GET", get.URL, nil, ""); status != 200 {
			t.Errorf("presigned get: %d", status)
		}
		tampered := http.StatusForbidden
		if v == nil {
			tampered = http.StatusOK
		}
		if status := do(t, "GET", strings.Replace(get.URL, "/bucket/", "/other/", 1), nil, ""); status != tampered {
			t.Errorf("presigned for another bucket: %d, want %d", status, tampered)
		}
		u, _ := url.Parse(get.URL)
		q := u.Query()
		q.Set("X-Amz-Date", time.Now().Add(-time.Hour).UTC().Format("20060102T150405Z"))
		q.Set("X-Amz-Expires", "60")
		u.RawQuery = q.Encode()
		if status := do(t, "GET", u.String(), nil, ""); status != http.StatusForbidden {
			t.Errorf("presigned and over: %d", status)
		}
	}
}

// TestPresignedCondition: a presigned URL may have a write's condition as a parameter.
func TestPresignedCondition(t *testing.T) {
	e, endpoint := serveS3(t, now())
	empty := fmt.Sprintf("%x", sha256.Sum256(nil))
	r, _ := http.NewRequest("PUT", endpoint+"/bucket/key?If-Match=etag&X-Amz-Expires=60&X-Amz-Content-Sha256="+empty, nil)
	signed, _, err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).PresignHTTP(t.Context(),
		aws.Credentials{AccessKeyID: "AKIAALICE", SecretAccessKey: "secret"}, r, empty, "s3", "us-east-1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if status := do(t, "PUT", signed, nil, ""); status != 200 || e.got != "bucket/key:  etag" {
		t.Errorf("%d, got %v", status, e.got)
	}
}

// TestPresignedChecksum: the checksum of no body that the SDK for JavaScript signs into its URLs isn't compared with what is uploaded.
func TestPresignedChecksum(t *testing.T) {
	e, endpoint := serveS3(t, now())
	r, _ := http.NewRequest("PUT", endpoint+"/bucket/key?X-Amz-Expires=60&x-amz-checksum-crc32=AAAAAA%3D%3D"+
		"&x-amz-sdk-checksum-algorithm=CRC32&x-id=PutObject", nil)
	signed, _, err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).PresignHTTP(t.Context(),
		aws.Credentials{AccessKeyID: "AKIAALICE", SecretAccessKey: "secret"}, r, "UNSIGNED-PAYLOAD", "s3", "us-east-1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if status := do(t, "PUT", signed, nil, "hello"); status != 200 || e.got != "bucket/key: hello " {
		t.Errorf("%d, got %v", status, e.got)
	}
}

// TestPresignedBodyAndHeaders checks that a request can't deviate from what its presigned URL says about body and headers.
func TestPresignedBodyAndHeaders(t *testing.T) {
	e, endpoint := serveS3(t, now())
	hello := "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	r, _ := http.NewRequest("PUT", endpoint+"/bucket/key?X-Amz-Expires=60&X-Amz-Content-Sha256="+hello, nil)
	v4URL, _, err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).PresignHTTP(t.Context(),
		aws.Credentials{AccessKeyID: "AKIAALICE", SecretAccessKey: "secret"}, r, hello, "s3", "us-east-1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	expires := fmt.Sprint(time.Now().Add(time.Minute).Unix())
	mac := hmac.New(sha1.New, []byte("secret"))
	mac.Write([]byte("PUT\n\n\n" + expires + "\nx-amz-storage-class:STANDARD\n/bucket/key"))
	v2URL := endpoint + "/bucket/key?AWSAccessKeyId=AKIAALICE&Expires=" + expires + "&x-amz-storage-class=STANDARD&Signature=" +
		url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, c := range []struct {
		name, url string
		header    http.Header
		body      string
		want      int
	}{
		{"version 4", v4URL, nil, "hello", http.StatusOK},
		{"version 4, another body", v4URL, nil, "jello", http.StatusBadRequest},
		{"version 2", v2URL, nil, "hello", http.StatusOK},
		{
			"version 2, another storage class", v2URL, http.Header{"X-Amz-Storage-Class": {"REDUCED_REDUNDANCY"}}, "hello",
			http.StatusForbidden,
		},
	} {
		e.got = nil
		if status := do(t, "PUT", c.url, c.header, c.body); status != c.want || (e.got != nil) != (c.want == http.StatusOK) {
			t.Errorf("%s: %d, want %d; got %v", c.name, status, c.want, e.got)
		}
	}
}

func do(t *testing.T, method, address string, h http.Header, body string) int {
	t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range h {
		r.Header[name] = values
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestRESTRefusals checks requests that are refused before any service sees them.
func TestRESTRefusals(t *testing.T) {
	_, endpoint := serveS3(t, nil)
	for _, c := range []struct{ name, method, path, body, want string }{
		{"a method that there is not", "PATCH", "/bucket/key", "", "MethodNotAllowed"},
		{"no UTF-8", "GET", "/bucket/%ff", "", "InvalidURI"},
		{"a bad query", "GET", "/bucket?a=%zz", "", "InvalidURI"},
		{"bad XML", "PUT", "/bucket?notification", "<a", "MalformedXML"},
		{"two roots", "PUT", "/bucket?notification", "<a/><b/>", "MalformedXML"},
		{
			"an unknown element", "PUT", "/bucket?notification", "<NotificationConfiguration><X/></NotificationConfiguration>",
			"MalformedXML",
		},
		{"deep XML", "PUT", "/bucket?notification", strings.Repeat("<a>", 99) + strings.Repeat("</a>", 99), "MalformedXML"},
		{"not implemented", "PUT", "/bucket?acl", "", "NotImplemented"},
	} {
		r, err := http.NewRequest(c.method, endpoint+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var e struct{ Code, Message, RequestId string }
		if err := xml.NewDecoder(resp.Body).Decode(&e); err != nil || e.Code != c.want || e.Message == "" || e.RequestId == "" {
			t.Errorf("%s: %+v (%v), want %s", c.name, e, err, c.want)
		}
		resp.Body.Close()
	}
}

// TestVirtualHosts checks requests with the bucket in the host name.
func TestVirtualHosts(t *testing.T) {
	e, endpoint := serveS3(t, nil)
	for host, want := range map[string]string{
		"b.s3.localhost:4566": "b/key", "b.s3.localhost.localstack.cloud:4566": "b/key", "b.localhost": "b/key",
		"a.s3.b.s3.us-east-1.amazonaws.com": "a.s3.b/key", "b.s3.amazonaws.com": "b/key", "b.s3-eu-west-1.amazonaws.com": "b/key",
	} {
		r, _ := http.NewRequest("GET", endpoint+"/key", nil)
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || e.got != want {
			t.Errorf("%s: %d, got %v, want %s", host, resp.StatusCode, e.got, want)
		}
	}
}

// TestCrossOrigin: a browser's question needs no signature, and the answer to a call has the same headers.
func TestCrossOrigin(t *testing.T) {
	api := wire.S3(&echo{})
	var asked []model.CrossOrigin
	api.AllowOrigin = func(_ context.Context, c model.CrossOrigin) (map[string]string, error) {
		if asked = append(asked, c); c.Origin != "https://a.test" {
			return nil, &smithy.GenericAPIError{Code: "AccessForbidden"}
		}
		return map[string]string{"Access-Control-Allow-Origin": c.Origin}, nil
	}
	h, err := wire.New(wire.Options{Verifier: newVerifier()}, api)
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, origin string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/bucket/key", nil)
		r.Header.Set("Access-Control-Request-Method", "PUT")
		r.Header.Set("Access-Control-Request-Headers", "X-Amz-Acl,range")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, c := range []struct {
		method, origin, allowed string
		status                  int
	}{
		{"OPTIONS", "", "", 400},
		{"OPTIONS", "https://a.test", "https://a.test", 200},
		{"OPTIONS", "https://b.test", "", 400},
		{"GET", "https://a.test", "https://a.test", 403}, // isn't signed
		{"GET", "https://b.test", "", 403},
	} {
		w := send(c.method, c.origin)
		if allowed := w.Header().Get("Access-Control-Allow-Origin"); w.Code != c.status || allowed != c.allowed {
			t.Errorf("%s of %q: %d, %q is allowed, want %d and %q", c.method, c.origin, w.Code, allowed, c.status, c.allowed)
		}
	}
	want := model.CrossOrigin{
		Bucket: "bucket", Key: "key", Origin: "https://a.test", Method: "PUT", Headers: []string{"x-amz-acl", "range"},
	}
	if len(asked) != 4 || !reflect.DeepEqual(asked[0], want) {
		t.Errorf("asked %+v, want four that begin with %+v", asked, want)
	}
}

// TestListsComeLast: S3's clients read an answer's list with what came before it.
func TestListsComeLast(t *testing.T) {
	_, endpoint := serveS3(t, nil)
	resp, err := http.Get(endpoint + "/bucket?acl")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	owner, list := bytes.Index(body, []byte("<Owner>")), bytes.Index(body, []byte("<AccessControlList>"))
	if err != nil || owner < 0 || list < owner {
		t.Errorf("%s (%v): want the owner before the list", body, err)
	}
}

// chunked sends a body that the test has already chunked.
func chunked(t *testing.T, endpoint, kind, trailer string, length int, body []byte) (int, string) {
	t.Helper()
	r, err := http.NewRequest("PUT", endpoint+"/bucket/key", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Content-Sha256", kind)
	r.Header.Set("X-Amz-Decoded-Content-Length", fmt.Sprint(length))
	if trailer != "" {
		r.Header.Set("X-Amz-Trailer", trailer)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// TestChunked checks aws-chunked bodies without a verifier.
func TestChunked(t *testing.T) {
	e, endpoint := serveS3(t, nil)
	const unsigned, signed = "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	for _, c := range []struct {
		name, kind, trailer string
		length              int
		body, want          string
	}{
		{
			"trailer", unsigned, "x-amz-checksum-crc32", 5, "3\r\nhel\r\n2\r\nlo\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n",
			"bucket/key: hello NhCmhg==",
		},
		{"no trailer", unsigned, "", 5, "5\r\nhello\r\n0\r\n\r\n", "bucket/key: hello "},
		{"signed", signed, "", 5, "5;chunk-signature=x\r\nhello\r\n0;chunk-signature=y\r\n\r\n", "bucket/key: hello "},
		{"empty", signed, "", 0, "0;chunk-signature=y\r\n\r\n", "bucket/key:  "},
		{"a trailer is missing", unsigned, "x-amz-checksum-crc32", 5, "5\r\nhello\r\n0\r\n\r\n", "MalformedTrailerError"},
		{"too short", unsigned, "", 6, "5\r\nhello\r\n0\r\n\r\n", "IncompleteBody"},
		{"too long", unsigned, "", 4, "5\r\nhello\r\n0\r\n\r\n", "IncompleteBody"},
		{"cut off", unsigned, "", 5, "5\r\nhel", "IncompleteBody"},
		{"no length", unsigned, "", 5, "x\r\nhello\r\n0\r\n\r\n", "InvalidRequest"},
		{"a negative length", unsigned, "", 5, "-5\r\nhello\r\n0\r\n\r\n", "InvalidRequest"},
		{"a long line", unsigned, "", 5, strings.Repeat("5", 9999), "InvalidRequest"},
	} {
		e.got = ""
		status, body := chunked(t, endpoint, c.kind, c.trailer, c.length, []byte(c.body))
		if got := fmt.Sprint(e.got); status == 200 && got != c.want || status != 200 && !strings.Contains(body, "<Code>"+c.want+"</Code>") {
			t.Errorf("%s: %d %q %s, want %q", c.name, status, got, body, c.want)
		}
	}
}

// TestChunkedTwice: a body in aws-chunked may come in HTTP's chunks, too. Then its length is in x-amz-decoded-content-length alone, without
// which a body of unknown length is refused.
func TestChunkedTwice(t *testing.T) {
	e, endpoint := serveS3(t, nil)
	for kind, want := range map[string]string{"STREAMING-UNSIGNED-PAYLOAD-TRAILER": "bucket/key: hello ", "UNSIGNED-PAYLOAD": "MissingContentLength"} {
		e.got = ""
		body := io.MultiReader(strings.NewReader("5\r\nhello\r\n0\r\n\r\n")) // net/http doesn't know its length
		r, err := http.NewRequest("PUT", endpoint+"/bucket/key", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Content-Sha256", kind)
		r.Header.Set("X-Amz-Decoded-Content-Length", "5")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close() //nolint:errcheck // it's read
		if got := fmt.Sprint(e.got); got != want && !strings.Contains(string(text), want) {
			t.Errorf("%s: %d %q %s", kind, answer.StatusCode, got, text)
		}
	}
}

// TestChecksumOfTheWholeObject: with CompleteMultipartUpload, a checksum header is about the object, not about the request's body.
func TestChecksumOfTheWholeObject(t *testing.T) {
	e, url := serveS3(t, nil)
	h := http.Header{"X-Amz-Checksum-Sha256": {"of-the-object-2"}}
	body := `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>e</ETag></Part></CompleteMultipartUpload>`
	if status := do(t, "POST", url+"/bucket/key?uploadId=u", h, body); status != 200 || e.got != "of-the-object-2 of 1" {
		t.Errorf("got %d, and the service %v", status, e.got)
	}
	h = http.Header{"X-Amz-Checksum-Sha256": {"wrong"}}
	if status := do(t, "PUT", url+"/bucket?notification", h, "<NotificationConfiguration/>"); status != 400 {
		t.Errorf("a wrong checksum of a body: %d", status)
	}
}

// absent is an S3 that has nothing.
type absent struct{}

func (absent) Operations() []call.Operation {
	return []call.Operation{
		call.Op("GetObject", func(context.Context, *s3.GetObjectInput) (*s3.GetObjectOutput, error) { return nil, noKey{} }),
		call.Op("ListBuckets", func(context.Context, *s3.ListBucketsInput) (*s3.ListBucketsOutput, error) {
			made := time.Date(2026, 11, 21, 12, 0, 0, 123456789, time.UTC)
			return &s3.ListBucketsOutput{Buckets: []types.Bucket{{CreationDate: &made}}}, nil
		}),
		call.Op("GetBucketLifecycleConfiguration",
			func(context.Context, *s3.GetBucketLifecycleConfigurationInput) (*s3.GetBucketLifecycleConfigurationOutput, error) {
				return &s3.GetBucketLifecycleConfigurationOutput{}, nil
			}),
		call.Op("PutBucketTagging", func(context.Context, *s3.PutBucketTaggingInput) (*s3.PutBucketTaggingOutput, error) {
			return &s3.PutBucketTaggingOutput{}, nil
		}),
	}
}

// noKey is an error with details.
type noKey struct{}

func (noKey) Error() string                 { return "no key" }
func (noKey) ErrorCode() string             { return "NoSuchKey" }
func (noKey) ErrorMessage() string          { return "no key" }
func (noKey) ErrorFault() smithy.ErrorFault { return smithy.FaultClient }
func (noKey) HTTPStatusCode() int           { return http.StatusNotFound }
func (noKey) Detail() map[string]string     { return map[string]string{"Key": "k", "A": "a", "Z": "z"} }

// TestS3Answers checks an error's elements, the second identifier, whole seconds, a root that isn't named after its operation, and an
// answer without content.
func TestS3Answers(t *testing.T) {
	h, err := wire.New(wire.Options{}, wire.S3(absent{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, target string
		status         int
		want           string
	}{
		{"GET", "/b/k", 404, `<Error><Code>NoSuchKey</Code><Message>no key</Message><A>a</A><Key>k</Key><Z>z</Z><RequestId>ID</RequestId>` +
			`<HostId>ID</HostId></Error>`},
		{"GET", "/", 200, `<CreationDate>2026-11-21T12:00:00.000Z</CreationDate>`},
		{"GET", "/b?lifecycle", 200, `<LifecycleConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`},
		{"PUT", "/b?tagging", 204, ``},
		{"GET", "/b/k?attributes", 501, `GetObjectAttributes`},
		{"PUT", "/b/k?renameObject", 501, `RenameObject`},
		{"PUT", "/b/copy", 501, `CopyObject`}, // its x-amz-copy-source is empty
		{
			"GET", "/b/k?partNumber=x", 400, `<Message>Part number must be an integer between 1 and 10000, inclusive</Message>` +
				`<ArgumentName>partNumber</ArgumentName><ArgumentValue>x</ArgumentValue>`,
		},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(c.method, c.target, nil)
		r.Host = "s3.localhost"
		if strings.HasSuffix(c.target, "copy") {
			r.Header.Set("x-amz-copy-source", "")
		}
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=A/20261121/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0")
		h.ServeHTTP(w, r)
		id := w.Header().Get("x-amz-id-2")
		body := strings.ReplaceAll(w.Body.String(), id, "ID")
		if id == "" || w.Code != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d, %q: %s", c.method, c.target, w.Code, id, body)
		}
	}
}
