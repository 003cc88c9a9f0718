package sign

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/wire/refusal"
)

// S3's signatures differ from the other services'. The path is escaped only once. The body's hash is in a header, and may be left out.
// Bodies can come in signed chunks. Presigned URLs may be of version 2, which is still boto3's default. So this file computes
// signatures itself, from the canonical request, and doesn't use the SDK's signer.

const contentHashHeader = "X-Amz-Content-Sha256"

// UnsignedPayload is the content hash of a request whose signature doesn't cover the body.
const UnsignedPayload = "UNSIGNED-PAYLOAD"

// VerifyREST checks a request's signature. Where the verifier doesn't, it only checks that a presigned URL hasn't expired. bucket is the one in
// the host name, if any.
func VerifyREST(v *Verifier, r *http.Request, service string, query url.Values, bucket string) (Caller, error) {
	if query.Has("AWSAccessKeyId") {
		return verifyV2(v, r, query, bucket)
	}
	a, err := parseAuthorization(r.Header, r.URL.RawQuery)
	if !v.Checks(r) {
		if err == nil && a.presigned {
			err = a.checkPresigned(time.Now())
		} else {
			err = nil
		}
		return Unverified(r), err
	}
	if err != nil {
		return Caller{}, err
	}
	if err := v.checkScopeREST(a, service, r.Header); err != nil {
		return Caller{}, err
	}
	if err := checkAllSigned(a, r.Header); err != nil {
		return Caller{}, err
	}
	if a.presigned {
		err = a.checkPresigned(v.now())
	} else if err = a.checkTime(v.now()); err != nil {
		err = refusal.With(
			http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.",
		)
	}
	if err != nil {
		return Caller{}, err
	}
	c, err := v.credential(r.Context(), a)
	if err != nil {
		return Caller{}, err
	}
	hash := ContentHash(r, query)
	if a.presigned {
		hash = cmp.Or(hash, UnsignedPayload)
	} else if r.Header.Get(contentHashHeader) == "" {
		return Caller{}, refusal.New("InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
	}
	key := signingKey(c.SecretAccessKey, a)
	signature := chainSigner{key, a, ""}.sign(algorithm, hashHex([]byte(canonicalRequest(r, a, hash))))
	if subtle.ConstantTimeCompare([]byte(signature), []byte(a.signature)) == 0 {
		return Caller{}, noMatch()
	}
	return Caller{AccessKeyID: a.accessKeyID, Identity: c.Identity, chunks: &chainSigner{key, a, signature}}, nil
}

// WrongRegion is S3's refusal of a signature for another region. Its clients learn from it which one is right, and sign once more.
type WrongRegion struct {
	*refusal.Refusal
	region string
}

// Detail returns more elements of the answer.
func (e *WrongRegion) Detail() map[string]string { return map[string]string{"Region": e.region} }

// Header returns a header of the answer, which is all that HEAD has.
func (e *WrongRegion) Header() http.Header { return http.Header{"X-Amz-Bucket-Region": {e.region}} }

// checkScopeREST is checkScope with S3's own refusal of other regions.
func (v *Verifier) checkScopeREST(a authorization, service string, h http.Header) error {
	if v.isFor(a.region, service) {
		return v.checkScope(a, service, h)
	}
	code := "AuthorizationHeaderMalformed"
	if a.presigned {
		code = "AuthorizationQueryParametersError"
	}
	err := refusal.New(code, "The signature is for the region '%s', which is wrong; expecting '%s'", a.region, v.Region)
	return &WrongRegion{err.(*refusal.Refusal), v.Region}
}

// ContentHash returns the content hash that the request states. A presigned URL may state it in a parameter.
func ContentHash(r *http.Request, query url.Values) string {
	return cmp.Or(r.Header.Get(contentHashHeader), query.Get(contentHashHeader))
}

func noMatch() error {
	return invalidSignature(
		"The request signature we calculated does not match the signature you provided. Check your key and signing method.",
	)
}

// checkPresigned refuses a URL before and after its lifetime.
func (a *authorization) checkPresigned(now time.Time) error {
	if now.Sub(a.at) > a.lifetime {
		return refusal.With(http.StatusForbidden, "AccessDenied", "Request has expired")
	}
	if a.checkTime(now) != nil {
		return refusal.With(http.StatusForbidden, "AccessDenied", "Request is not valid yet")
	}
	return nil
}

// checkAllSigned refuses x-amz- headers that the signature doesn't cover, because somebody else may have added them.
func checkAllSigned(a authorization, h http.Header) error {
	for name := range h {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "x-amz-") && !slices.Contains(a.signedHeaders, lower) {
			return refusal.With(
				http.StatusForbidden, "AccessDenied", "There were headers present in the request which were not signed: %s", lower,
			)
		}
	}
	return nil
}

// canonicalRequest returns the text that SigV4 signs, in S3's variant.
func canonicalRequest(r *http.Request, a authorization, payloadHash string) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n" + escape(r.URL.Path, true) + "\n" + canonicalQuery(r.URL.RawQuery) + "\n")
	for _, name := range a.signedHeaders {
		b.WriteString(name + ":" + headerValue(r, name) + "\n")
	}
	b.WriteString("\n" + strings.Join(a.signedHeaders, ";") + "\n" + payloadHash)
	return b.String()
}

// headerValue returns a header's value in the form that is signed.
func headerValue(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(r.ContentLength, 10)
	case "transfer-encoding":
		return strings.Join(r.TransferEncoding, ",")
	}
	values := slices.Clone(r.Header.Values(name))
	for i, v := range values {
		values[i] = strings.Join(strings.Fields(v), " ")
	}
	return strings.Join(values, ",")
}

// canonicalQuery returns the query sorted by name, then by value, with AWS's escapes, and without the signature. Pairs can't be sorted
// whole: of "select=" and "select-type=2" the second would come first.
func canonicalQuery(raw string) string {
	values, _ := url.ParseQuery(raw) // parseTarget has already parsed it
	values.Del("X-Amz-Signature")
	type pair struct{ name, value string }
	var pairs []pair
	for name, list := range values {
		for _, value := range list {
			pairs = append(pairs, pair{escape(name, false), escape(value, false)})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
	var b strings.Builder
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.name + "=" + p.value)
	}
	return b.String()
}

// escape implements AWS's UriEncode. With path, slashes stay.
func escape(s string, path bool) string {
	const digits = "0123456789ABCDEF"
	b := make([]byte, 0, len(s)+16)
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == '~', path && c == '/':
			b = append(b, c)
		default:
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return string(b)
}

func hmacOf(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hashHex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// signingKey derives the key for the signature's day, region and service.
func signingKey(secret string, a authorization) []byte {
	key := []byte("AWS4" + secret)
	for _, part := range []string{a.date, a.region, a.service, "aws4_request"} {
		key = hmacOf(key, part)
	}
	return key
}

// chainSigner signs one request, and then each chunk of its body. Each signature covers the one before.
type chainSigner struct {
	key      []byte
	a        authorization
	previous string // signature
}

// sign signs a text. kind names the text's form.
func (s chainSigner) sign(kind string, rest string) string {
	scope := strings.Join([]string{s.a.date, s.a.region, s.a.service, "aws4_request"}, "/")
	return hex.EncodeToString(hmacOf(s.key, strings.Join([]string{kind, s.a.at.Format(amzDate), scope, rest}, "\n")))
}

// chunk returns the signature of the next chunk, which has this hash.
func (s *chainSigner) chunk(hash string) string {
	s.previous = s.sign("AWS4-HMAC-SHA256-PAYLOAD", s.previous+"\n"+hashHex(nil)+"\n"+hash)
	return s.previous
}

// trailer returns the signature of the trailers, whose text has this hash.
func (s *chainSigner) trailer(hash string) string {
	return s.sign("AWS4-HMAC-SHA256-TRAILER", s.previous+"\n"+hash)
}

// signedInV2 lists the parameters that version 2 signs, in order.
// See "Signing and authenticating REST requests" (signature version 2) in S3's guide.
var signedInV2 = []string{
	"accelerate", "acl", "analytics", "cors", "defaultObjectAcl", "delete", "inventory", "lifecycle", "location", "logging", "metrics",
	"notification", "object-lock", "partNumber", "policy", "replication", "requestPayment", "response-cache-control",
	"response-content-disposition", "response-content-encoding", "response-content-language", "response-content-type",
	"response-expires", "restore", "select", "select-type", "storageClass", "tagging", "torrent", "uploadId", "uploads", "versionId",
	"versioning", "versions", "website",
}

// verifyV2 checks a presigned URL of version 2.
func verifyV2(v *Verifier, r *http.Request, query url.Values, bucket string) (Caller, error) {
	id := query.Get("AWSAccessKeyId")
	now := time.Now()
	if v != nil {
		now = v.now()
	}
	expires, err := strconv.ParseInt(query.Get("Expires"), 10, 64)
	if err != nil {
		return Caller{}, refusal.With(
			http.StatusForbidden, "AccessDenied", "Invalid date (should be seconds since epoch): %s", query.Get("Expires"),
		)
	}
	if now.Unix() > expires {
		return Caller{}, refusal.With(http.StatusForbidden, "AccessDenied", "Request has expired")
	}
	if !v.Checks(r) {
		return Unverified(r), nil
	}
	c, err := v.credential(r.Context(), authorization{accessKeyID: id, sessionToken: query.Get("x-amz-security-token")})
	if err != nil {
		return Caller{}, err
	}
	mac := hmac.New(sha1.New, []byte(c.SecretAccessKey))
	mac.Write([]byte(canonicalV2(r, query, bucket)))
	signature, err := base64.StdEncoding.DecodeString(query.Get("Signature"))
	if err != nil || !hmac.Equal(signature, mac.Sum(nil)) {
		return Caller{}, noMatch()
	}
	return Caller{AccessKeyID: id, Identity: c.Identity}, nil
}

// canonicalV2 returns the text that version 2 signs. The URL may have a header's value as a parameter. If a request has both, the
// header counts.
func canonicalV2(r *http.Request, query url.Values, bucket string) string {
	amz := map[string]string{}
	for name, values := range query {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") {
			amz[lower] = strings.Join(values, ",")
		}
	}
	for name, values := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") {
			amz[lower] = strings.Join(values, ",")
		}
	}
	lines := []string{
		r.Method, cmp.Or(r.Header.Get("Content-Md5"), query.Get("content-md5")),
		cmp.Or(r.Header.Get("Content-Type"), query.Get("content-type")), query.Get("Expires"),
	}
	for _, name := range slices.Sorted(maps.Keys(amz)) {
		lines = append(lines, name+":"+amz[name])
	}
	resource := r.URL.EscapedPath()
	if bucket != "" {
		resource = "/" + bucket + resource
	}
	var sub []string
	for _, name := range signedInV2 {
		if !query.Has(name) {
			continue
		}
		if value := query.Get(name); value != "" {
			name += "=" + value
		}
		sub = append(sub, name)
	}
	if len(sub) > 0 {
		resource += "?" + strings.Join(sub, "&")
	}
	return strings.Join(append(lines, resource), "\n")
}
