package sign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/wire/refusal"
)

// exampleSigner returns a signer with the key of the examples in S3's documentation. seed is the request's signature.
func exampleSigner(seed string) *chainSigner {
	a := authorization{date: "20130524", region: "us-east-1", service: "s3", at: time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)}
	return &chainSigner{signingKey("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", a), a, seed}
}

// TestSignedChunks reads the examples in S3's documentation: 66,560 times the letter a in two chunks, with and without a trailer. It
// also reads them with one byte changed, which must fail.
func TestSignedChunks(t *testing.T) {
	const kind = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	a := strings.Repeat("a", 65536)
	for _, c := range []struct{ kind, trailer, seed, first, second, last, trailers string }{
		{
			kind, "", "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
			"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
			"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
			"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9", "",
		},
		{
			kind + "-TRAILER", "x-amz-checksum-crc32c", "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
			"b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
			"1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
			"2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
			"x-amz-checksum-crc32c:sOO8/Q==\r\n" +
				"x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n",
		},
	} {
		body := fmt.Sprintf("10000;chunk-signature=%s\r\n%s\r\n400;chunk-signature=%s\r\n%s\r\n0;chunk-signature=%s\r\n%s\r\n",
			c.first, a, c.second, a[:1024], c.last, c.trailers)
		r, err := NewChunkedReader(strings.NewReader(body), c.kind, c.trailer, Caller{chunks: exampleSigner(c.seed)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != a+a[:1024] {
			t.Errorf("%s: %d bytes, %v", c.kind, len(got), err)
		}
		for _, at := range []int{100, 65536 + 300, len(body) - len(c.trailers) - 10} {
			b := []byte(body)
			b[at] ^= 1
			r, _ := NewChunkedReader(bytes.NewReader(b), c.kind, c.trailer, Caller{chunks: exampleSigner(c.seed)})
			if _, err := io.ReadAll(r); err == nil {
				t.Errorf("%s: changed at %d and read", c.kind, at)
			}
		}
		if c.trailer != "" {
			r, _ := NewChunkedReader(
				strings.NewReader(strings.Replace(body, "sOO8", "sOO9", 1)), c.kind, c.trailer, Caller{chunks: exampleSigner(c.seed)},
			)
			if _, err := io.ReadAll(r); err == nil {
				t.Error("another trailer was read")
			}
		}
	}
}

// FuzzChunked reads any bytes as aws-chunked. Reading must end, with at most as many bytes as came, and with EOF or a refusal.
func FuzzChunked(f *testing.F) {
	for _, s := range []string{
		"5\r\nhello\r\n0\r\n\r\n", "5;chunk-signature=x\r\nhello\r\n0;chunk-signature=y\r\nx-amz-a:b\r\n\r\n", "0\r\n", "-1\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewChunkedReader(bytes.NewReader(b), "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "", Caller{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		var refused *refusal.Refusal
		if len(got) > len(b) || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &refused) {
			t.Errorf("%d bytes of %d, %v", len(got), len(b), err)
		}
	})
}
