package wire_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// field is a field of a form.
type field struct{ name, value string }

// formWith makes a form of fields, of which the last is the file, named C:\pictures\cat.jpg.
func formWith(fields ...field) (contentType string, body []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		part := func() (io.Writer, error) { return w.CreateFormField(f.name) }
		if f.name == "file" {
			part = func() (io.Writer, error) { return w.CreateFormFile("file", `C:\pictures\cat.jpg`) }
		}
		p, _ := part()
		io.WriteString(p, f.value) //nolint:errcheck // memory takes all
	}
	w.Close()
	return w.FormDataContentType(), b.Bytes()
}

// postTo posts a form, and doesn't follow where its answer leads.
func postTo(t *testing.T, url string, fields ...field) (*http.Response, string) {
	t.Helper()
	contentType, body := formWith(fields...)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Post(url, contentType, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(answer)
}

// TestFormUploads: a web page's form puts an object, and is answered as it asks.
func TestFormUploads(t *testing.T) {
	e, endpoint := serveS3(t, nil)
	key, file := field{"key", "in/${filename}"}, field{"file", "miau"}
	for _, c := range []struct {
		name     string
		fields   []field
		status   int
		location string
		body     string
	}{
		{"nothing asked", []field{key, file}, 204, endpoint + "/bucket/in%2Fcat.jpg", ""},
		{"200", []field{key, {"success_action_status", "200"}, file}, 200, endpoint + "/bucket/in%2Fcat.jpg", ""},
		{
			"201", []field{key, {"success_action_status", "201"}, file}, 201, endpoint + "/bucket/in%2Fcat.jpg",
			"<PostResponse><Location>" + endpoint + "/bucket/in%2Fcat.jpg</Location><Bucket>bucket</Bucket><Key>in/cat.jpg</Key>" +
				`<ETag>"e"</ETag></PostResponse>`,
		},
		{"another status", []field{key, {"success_action_status", "418"}, file}, 204, endpoint + "/bucket/in%2Fcat.jpg", ""},
		{
			"a redirect", []field{key, {"success_action_redirect", "https://a.test/done?x=1"}, file}, 303,
			"https://a.test/done?x=1&bucket=bucket&etag=%22e%22&key=in%2Fcat.jpg", "",
		},
		{"a redirect to nowhere", []field{key, {"success_action_redirect", "done"}, file}, 204, endpoint + "/bucket/in%2Fcat.jpg", ""},
		{"fields in capitals, and one behind the file", []field{{"Key", "in/${filename}"}, {"x", "y"}, file, {"z", "z"}}, 204, endpoint + "/bucket/in%2Fcat.jpg", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e.got = nil
			resp, body := postTo(t, endpoint+"/bucket?x-amz-acl=public-read", c.fields...)
			if resp.StatusCode != c.status || resp.Header.Get("Location") != c.location || !strings.HasSuffix(body, c.body) {
				t.Errorf("%d to %s: %s", resp.StatusCode, resp.Header.Get("Location"), body)
			}
			if e.got != "bucket/in/cat.jpg: miau " {
				t.Errorf("it put %v", e.got)
			}
		})
	}
}

// TestFormsThatAreRefused: what isn't a form is refused, and what comes before the file is short.
func TestFormsThatAreRefused(t *testing.T) {
	e, endpoint := serveS3(t, nil)
	key, file := field{"key", "k"}, field{"file", "miau"}
	for _, c := range []struct {
		name   string
		fields []field
		want   string
	}{
		{"no file", []field{key}, "<Code>InvalidArgument</Code><Message>POST requires exactly one file upload per request.</Message>" +
			"<ArgumentName>file</ArgumentName><ArgumentValue>0</ArgumentValue>"},
		{"no key", []field{file, key}, "<ArgumentName>key</ArgumentName>"},
		{"a field twice", []field{key, {"acl", "private"}, {"ACL", "private"}, file}, "<Code>MalformedPOSTRequest</Code>"},
		{"a field whose name is no header's", []field{key, {"x-amz-meta-a b", "1"}, file}, "<Code>MalformedPOSTRequest</Code>"},
		{"tags that aren't XML", []field{key, {"tagging", "a=b"}, file}, "<Code>MalformedXML</Code>"},
		{"long fields", []field{key, {"x-amz-meta-a", strings.Repeat("a", 40<<10)}, file}, "<Code>MaxPostPreDataLengthExceededError</Code>"},
		{"a policy that is none", []field{key, {"policy", "e30="}, file}, "<Code>InvalidPolicyDocument</Code>"},
		{"a policy that is broken", []field{key, {"policy", policyOf("2100-01-01T00:00:00Z", `{"key": "l"}`)}, file}, "Invalid according to Policy: Policy Condition failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := postTo(t, endpoint+"/bucket", c.fields...)
			if resp.StatusCode < 400 || !strings.Contains(body, c.want) || e.got != nil {
				t.Errorf("%d %s, put %v; want %s", resp.StatusCode, body, e.got, c.want)
			}
		})
	}
	for name, body := range map[string]string{"nothing": "", "text": "hello", "half a form": "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk"} {
		resp, err := http.Post(endpoint+"/bucket", "multipart/form-data; boundary=x", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || e.got != nil {
			t.Errorf("%s: %d, put %v", name, resp.StatusCode, e.got)
		}
	}
}

// policyOf returns a policy for the bucket that the tests have, unless its conditions name one.
func policyOf(expires, conditions string) string {
	if !strings.Contains(conditions, "bucket") {
		conditions += `, {"bucket": "bucket"}`
	}
	return base64.StdEncoding.EncodeToString([]byte(`{"expiration": "` + expires + `", "conditions": [` + conditions + `]}`))
}

// signedForm returns the fields that sign a policy as a key that is valid at noon.
func signedForm(id, secret, region, policy string) []field {
	credential := id + "/" + noon.Format("20060102") + "/" + region + "/s3/aws4_request"
	key := []byte("AWS4" + secret)
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	for _, part := range []string{noon.Format("20060102"), region, "s3", "aws4_request", policy} {
		key = mac(key, part)
	}
	return []field{
		{"policy", policy}, {"x-amz-algorithm", "AWS4-HMAC-SHA256"}, {"x-amz-credential", credential},
		{"x-amz-date", noon.Format("20060102T150405Z")}, {"x-amz-signature", hex.EncodeToString(key)},
	}
}

// signedFormV2 returns the fields that sign a policy in version 2.
func signedFormV2(id, secret, policy string) []field {
	h := hmac.New(sha1.New, []byte(secret))
	h.Write([]byte(policy))
	return []field{{"AWSAccessKeyId", id}, {"policy", policy}, {"signature", base64.StdEncoding.EncodeToString(h.Sum(nil))}}
}

// TestFormsOfSomeKeys: where only some keys' signatures are checked, a form with such a key needs its signature.
func TestFormsOfSomeKeys(t *testing.T) {
	v := newVerifier()
	v.Only = func(id string) bool { return strings.HasPrefix(id, "AKIA") }
	_, endpoint := serveS3(t, v)
	good := policyOf(noon.Add(time.Hour).Format(time.RFC3339), `["starts-with", "$key", ""]`)
	for _, c := range []struct {
		name   string
		signed []field
		status int
	}{
		{"no key", nil, http.StatusNoContent},
		{"another key", []field{{"AWSAccessKeyId", "test"}}, http.StatusNoContent},
		{"one of them without a policy", []field{{"AWSAccessKeyId", "AKIAALICE"}}, http.StatusForbidden},
		{"one of them with another secret", signedFormV2("AKIAALICE", "wrong", good), http.StatusForbidden},
		{"one of them in version 4 with another secret", signedForm("AKIAALICE", "wrong", "us-east-1", good), http.StatusForbidden},
		{"one of them", signedFormV2("AKIAALICE", "secret", good), http.StatusNoContent},
	} {
		resp, body := postTo(t, endpoint+"/bucket", append(c.signed, field{"key", "k"}, field{"file", "miau"})...)
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d %s", c.name, resp.StatusCode, body)
		}
	}
}

// TestSignedForms: where signatures are checked a form needs one of its policy, and nothing is put that the policy doesn't allow.
func TestSignedForms(t *testing.T) {
	e, endpoint := serveS3(t, newVerifier())
	later, before := noon.Add(time.Hour).Format(time.RFC3339), noon.Add(-time.Second).Format(time.RFC3339)
	v4 := `["starts-with", "$x-amz-algorithm", ""], ["starts-with", "$x-amz-credential", ""], ["starts-with", "$x-amz-date", ""], `
	allows := v4 + `{"bucket": "bucket"}, ["starts-with", "$key", "in/"], ["content-length-range", 2, 5]`
	good := policyOf(later, allows)
	alice := func(policy string) []field { return signedForm("AKIAALICE", "secret", "us-east-1", policy) }
	session := policyOf(later, allows+`, ["starts-with", "$x-amz-security-token", ""]`)
	v2 := policyOf(later, `["starts-with", "$key", "in/"]`)
	for _, c := range []struct {
		name   string
		signed []field
		more   []field
		key    string
		file   string
		want   string // in the refusal, or "" if it's put
	}{
		{"right", alice(good), nil, "in/x", "miau", ""},
		{"right, in version 2", signedFormV2("AKIAALICE", "secret", v2), nil, "in/x", "miau", ""},
		{"right, with a session", signedForm("ASIATASK", "secret", "us-east-1", session), []field{{"x-amz-security-token", "token"}}, "in/x", "miau", ""},
		{"the largest file", alice(good), nil, "in/x", "miaou", ""},
		{"too large", alice(good), nil, "in/x", "miaaou", "<Code>EntityTooLarge</Code>"},
		{"too small", alice(good), nil, "in/x", "m", "<Code>EntityTooSmall</Code>"},
		{"another key", alice(good), nil, "out/x", "miau", `Policy Condition failed: ["starts-with", "$key", "in/"]`},
		{"a field that the policy doesn't name", alice(good), []field{{"acl", "private"}}, "in/x", "miau", "Extra input fields: acl"},
		{"expired", alice(policyOf(before, allows)), nil, "in/x", "miau", "Invalid according to Policy: Policy expired."},
		{"no signature", nil, nil, "in/x", "miau", "<Code>AccessDenied</Code>"},
		{"a policy without a signature", []field{{"policy", good}}, nil, "in/x", "miau", "<Code>InvalidArgument</Code>"},
		{"an unknown key", signedForm("AKIABOB", "secret", "us-east-1", good), nil, "in/x", "miau", "<Code>InvalidAccessKeyId</Code>"},
		{"a wrong secret", signedForm("AKIAALICE", "guess", "us-east-1", good), nil, "in/x", "miau", "<Code>SignatureDoesNotMatch</Code>"},
		{"a wrong secret in version 2", signedFormV2("AKIAALICE", "guess", v2), nil, "in/x", "miau", "<Code>SignatureDoesNotMatch</Code>"},
		{"another region", signedForm("AKIAALICE", "secret", "eu-west-1", good), nil, "in/x", "miau", "<Code>AuthorizationHeaderMalformed</Code>"},
		{"a session without its token", signedForm("ASIATASK", "secret", "us-east-1", good), nil, "in/x", "miau", "<Code>InvalidAccessKeyId</Code>"},
		{"an expired session", signedForm("ASIAOVER", "secret", "us-east-1", session), []field{{"x-amz-security-token", "token"}}, "in/x", "miau", "<Code>ExpiredToken</Code>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e.got = nil
			fields := append(append([]field{{"key", c.key}}, c.signed...), c.more...)
			resp, body := postTo(t, endpoint+"/bucket", append(fields, field{"file", c.file})...)
			if c.want == "" {
				if resp.StatusCode != 204 || e.got != fmt.Sprintf("bucket/%s: %s ", c.key, c.file) {
					t.Errorf("%d %s, put %v", resp.StatusCode, body, e.got)
				}
				return
			}
			if resp.StatusCode < 400 || !strings.Contains(body, c.want) || e.got != nil {
				t.Errorf("%d %s, put %v; want %s", resp.StatusCode, body, e.got, c.want)
			}
		})
	}
}

// TestFormsOfStrangers: where signatures are checked, no more is read of an unsigned form than its fields.
func TestFormsOfStrangers(t *testing.T) {
	_, endpoint := serveS3(t, newVerifier())
	contentType, body := formWith(field{"key", "k"}, field{"file", strings.Repeat("m", 64<<20)})
	sent := &counted{Reader: bytes.NewReader(body)}
	r, err := http.NewRequest(http.MethodPost, endpoint+"/bucket", sent)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil { // the answer may be lost with the connection
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
	if read := sent.read.Load(); read > 16<<20 {
		t.Errorf("%d bytes were taken of a stranger", read)
	}
}

// counted counts what is read of a body.
type counted struct {
	io.Reader
	read atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read.Add(int64(n))
	return n, err
}
