package wire_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/pintle/pintle/internal/wire"
)

// countedBody is a body that counts what was read of it.
type countedBody struct {
	io.Reader
	read int
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *countedBody) Close() error { return nil }

// strangersRequest is a request with headers, for a table.
func strangersRequest(method, url, body string, header ...string) (*http.Request, *countedBody) {
	counted := &countedBody{Reader: strings.NewReader(body)}
	r := httptest.NewRequest(method, url, counted)
	r.ContentLength = int64(len(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r, counted
}

// signAs signs a request. It states the hash of the body in a header if asked to.
func signAs(t *testing.T, r *http.Request, id, secret, service, body string, when time.Time, stated bool) {
	t.Helper()
	sum := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(sum[:])
	if stated {
		r.Header.Set("X-Amz-Content-Sha256", hash)
	}
	key := aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}
	if err := v4.NewSigner().SignHTTP(t.Context(), key, r, hash, service, "us-east-1", when); err != nil {
		t.Fatal(err)
	}
}

// TestStrangersBodiesAreNotRead: what the headers of a request show to be unsigned is refused before its body is read.
func TestStrangersBodiesAreNotRead(t *testing.T) {
	h := newHandler(t, wire.Options{Verifier: newVerifier()},
		wire.ECS(&fakeECS{}), wire.CloudWatch(&fakeCloudWatch{}), wire.EC2(nil), wire.S3(&echo{}))
	const target = "AmazonEC2ContainerServiceV20141113.DescribeClusters"
	ecsHeaders := []string{"X-Amz-Target", target, "Content-Type", "application/x-amz-json-1.1"}
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, c := range []struct {
		name, method, path string
		headers            []string
		sign               func(r *http.Request, body string)
		want               string
	}{
		{"JSON", "POST", "/", ecsHeaders, nil, "MissingAuthenticationToken"},
		{"a form", "POST", "/", form, nil, "MissingAuthenticationToken"},
		{"CBOR", "POST", "/service/GraniteServiceVersion20100801/operation/PutMetricData", []string{"Smithy-Protocol", "rpc-v2-cbor"}, nil,
			"MissingAuthenticationToken"},
		{"an object", "PUT", "/bucket/key", nil, nil, "AccessDenied"},
		{"a request for nobody", "POST", "/", []string{"X-Amz-Target", "X.Y"}, nil, "MissingAuthenticationToken"},
		{"an unknown key", "POST", "/", ecsHeaders, func(r *http.Request, body string) {
			signAs(t, r, "AKIABOB", "secret", "ecs", body, noon, false)
		}, "UnrecognizedClient"},
		{"an old signature", "POST", "/", ecsHeaders, func(r *http.Request, body string) {
			signAs(t, r, "AKIAALICE", "secret", "ecs", body, noon.Add(-time.Hour), false)
		}, "InvalidSignature"},
		{"another service's signature", "POST", "/", ecsHeaders, func(r *http.Request, body string) {
			signAs(t, r, "AKIAALICE", "secret", "monitoring", body, noon, false)
		}, "InvalidSignature"},
		{"a service that isn't here", "POST", "/", form, func(r *http.Request, body string) {
			signAs(t, r, "AKIAALICE", "secret", "sns", body, noon, false)
		}, "Pintle has no Amazon SNS"},
		{"a wrong secret, and the body's hash", "POST", "/", ecsHeaders, func(r *http.Request, body string) {
			signAs(t, r, "AKIAALICE", "guess", "ecs", body, noon, true)
		}, "InvalidSignature"},
	} {
		body := strings.Repeat("x", 1<<20)
		r, counted := strangersRequest(c.method, "http://pintle.test"+c.path, body, c.headers...)
		if c.sign != nil {
			c.sign(r, body)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), c.want) || w.Header().Get("Connection") != "close" {
			t.Errorf("%s gets %d %s %s", c.name, w.Code, w.Header(), w.Body)
		}
		if counted.read > 0 {
			t.Errorf("%s: %d bytes of the body were read", c.name, counted.read)
		}
	}
}

// TestSignedHashIsTheBodys: the hash in a header is checked against the body, even though the signature was checked before.
func TestSignedHashIsTheBodys(t *testing.T) {
	h := newHandler(t, wire.Options{Verifier: newVerifier()}, wire.ECS(&fakeECS{
		describeClusters: func(context.Context, *ecs.DescribeClustersInput) (*ecs.DescribeClustersOutput, error) {
			return &ecs.DescribeClustersOutput{}, nil
		},
	}))
	for _, c := range []struct {
		sent string
		want int
	}{{"{}", http.StatusOK}, {"[]", http.StatusBadRequest}} {
		r, _ := strangersRequest("POST", "http://pintle.test/", c.sent,
			"X-Amz-Target", "AmazonEC2ContainerServiceV20141113.DescribeClusters", "Content-Type", "application/x-amz-json-1.1")
		signAs(t, r, "AKIAALICE", "secret", "ecs", "{}", noon, true)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%s: %d %s", c.sent, w.Code, w.Body)
		}
	}
}

// TestInflatedAfterTheSignature: nobody but a signer has a body inflated.
func TestInflatedAfterTheSignature(t *testing.T) {
	h := newHandler(t, wire.Options{Verifier: newVerifier()}, wire.CloudWatch(&fakeCloudWatch{}))
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	io.WriteString(z, strings.Repeat(" ", 5<<20)) //nolint:errcheck // a buffer takes all
	z.Close()                                     //nolint:errcheck // as above
	r, _ := strangersRequest("POST", "http://pintle.test/", bomb.String(),
		"X-Amz-Target", "GraniteServiceVersion20100801.PutMetricData", "Content-Type", "application/x-amz-json-1.0", "Content-Encoding", "gzip")
	signAs(t, r, "AKIAALICE", "guess", "monitoring", bomb.String(), noon, false)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); !strings.Contains(w.Body.String(), "InvalidSignature") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestErrorsRepeatLittle: an error tells enough to find what is wrong, and doesn't send the request back.
func TestErrorsRepeatLittle(t *testing.T) {
	long := strings.Repeat("é", 200_000)
	h := newHandler(t, wire.Options{}, wire.ECS(&fakeECS{}), wire.STS(fakeSTS{}), wire.CloudWatch(&fakeCloudWatch{}), wire.S3(&echo{}))
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
	}{
		{"JSON", "POST", "/", `{"` + long + `": 1}`, []string{"X-Amz-Target", "AmazonEC2ContainerServiceV20141113.DescribeClusters"}},
		{"a form", "POST", "/", "Action=GetCallerIdentity&Version=2011-06-15&" + long + "=1",
			[]string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"CBOR", "POST", "/service/GraniteServiceVersion20100801/operation/PutMetricData",
			"\xa1\x7a\x00\x06\x1a\x80" + long + "\x01", []string{"Smithy-Protocol", "rpc-v2-cbor"}},
		{"XML", "PUT", "/bucket?notification", "<NotificationConfiguration><" + long + "/></NotificationConfiguration>", nil},
	} {
		r, _ := strangersRequest(c.method, "http://pintle.test"+c.path, c.body, c.headers...)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || w.Body.Len() > 5000 || !strings.Contains(w.Body.String(), "ééé") {
			t.Errorf("%s: %d and %d bytes: %.200s", c.name, w.Code, w.Body.Len(), w.Body)
		}
	}
}

// TestABodyThatTrickles: a body must come at a pace, so that nobody holds memory by sending a byte now and then.
func TestABodyThatTrickles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, wire.Options{}, wire.ECS(&fakeECS{}))
		client, connection := net.Pipe()
		listener := make(pipes, 1)
		listener <- connection
		server := &http.Server{Handler: h}
		go server.Serve(listener)
		began := time.Now()
		var writer sync.WaitGroup
		writer.Go(func() {
			io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: AmazonEC2ContainerServiceV20141113.DescribeClusters\r\n"+
				"Content-Length: 1000\r\n\r\n")
			for range 1000 {
				if _, err := io.WriteString(client, " "); err != nil {
					return
				}
				time.Sleep(5 * time.Second)
			}
		})
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil || resp.StatusCode != http.StatusBadRequest || time.Since(began) > 2*time.Minute {
			t.Errorf("after %s: %v %v", time.Since(began), resp, err)
		}
		client.Close()
		writer.Wait()
		close(listener)
		server.Close()
	})
}
