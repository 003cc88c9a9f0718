// Package sign checks AWS's signatures of requests: version 4 in headers and presigned URLs, S3's variants with signed chunks, and
// presigned URLs of version 2. The caller looks up the keys. Sign never changes a request.
package sign

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/refusal"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Verifier checks SigV4 signatures. It signs the request again and compares the signatures.
type Verifier struct {
	Region string
	// Global has the region of signatures for services whose clients may name that one wherever they are.
	Global map[string]string
	Now    func() time.Time // nil means time.Now
	// Lookup finds an access key, or returns ErrUnknownKey. The session token came with the request.
	Lookup func(ctx context.Context, accessKeyID, sessionToken string) (Credential, error)
	// Only reports whether signatures with an access key are checked, by its id. With nil, all are.
	Only func(accessKeyID string) bool

	once   sync.Once
	signer *v4.Signer    // caches the derived keys, by day
	turns  chan struct{} // has room for as many as may hash large bodies at once
}

// Checks reports whether a request's signature is checked. A nil verifier checks none.
func (v *Verifier) Checks(r *http.Request) bool { return v.checks(claimed(r)) }

func (v *Verifier) checks(accessKeyID string) bool {
	return v != nil && (v.Only == nil || v.Only(accessKeyID))
}

// Credential is what the server knows about an access key.
type Credential struct {
	SecretAccessKey string
	SessionToken    string    // if set, the request must have it
	Expires         time.Time // zero means never
	Identity        call.Identity
}

// ErrUnknownKey is Lookup's error for an access key that doesn't exist.
var ErrUnknownKey = errors.New("unknown access key")

// Caller is who sent a request.
type Caller struct {
	AccessKeyID string
	call.Identity

	chunks *chainSigner // for a body in signed chunks; nil if signatures aren't checked
}

// Signed is what a signature covers. It isn't an http.Request, because nodes also sign frames: each frame on the telemetry web
// socket has its own headers, and a signature over them, its body and the socket's URL.
type Signed struct {
	Method   string
	Path     string // escaped, as it was sent
	RawQuery string
	Host     string
	Header   http.Header
	Body     []byte
}

// HeadOf returns what a request's signature covers besides its body.
func HeadOf(r *http.Request) Signed {
	return Signed{
		Method:   r.Method,
		Path:     r.URL.EscapedPath(),
		RawQuery: r.URL.RawQuery,
		Host:     r.Host,
		Header:   r.Header,
	}
}

// maxSkew is how far a signature's time may be from the server's.
const maxSkew = 15 * time.Minute

// Verify checks the signature over s, which must be made for the service, and returns who signed. Its errors are API errors, with
// their names in AWS JSON.
func (v *Verifier) Verify(ctx context.Context, service string, s Signed) (Caller, error) {
	claim, err := v.Check(ctx, service, s, int64(len(s.Body)))
	if err != nil {
		return Caller{}, err
	}
	return claim.Verify(ctx, s.Body)
}

// Claim is a signature of which all was checked that can be without the body.
type Claim struct {
	v      *Verifier
	head   Signed
	a      authorization
	c      Credential
	stated string // the body's hash, if the request states it; the signature is right if the body has it
}

// Check checks a signature before the body is read: who claims to call, when, and for what. A request that states its body's hash has
// its whole signature checked. length is the body's, as announced.
func (v *Verifier) Check(ctx context.Context, service string, head Signed, length int64) (*Claim, error) {
	a, err := parseAuthorization(head.Header, head.RawQuery)
	if err != nil {
		return nil, err
	}
	if err := v.checkScope(a, service, head.Header); err != nil {
		return nil, err
	}
	if err := a.checkTime(v.now()); err != nil {
		return nil, err
	}
	c, err := v.credential(ctx, a)
	if err != nil {
		return nil, err
	}
	claim := &Claim{v: v, head: head, a: a, c: c}
	if stated := head.Header.Get(contentHashHeader); isHash(stated) {
		claim.stated = stated
		return claim, claim.compare(ctx, stated, length)
	}
	return claim, nil
}

// StatesBody reports whether the request states its body's hash, so that all was checked but that the body has it.
func (c *Claim) StatesBody() bool { return c.stated != "" }

// Verify checks the rest of the signature, now that the body is known, and returns who signed.
func (c *Claim) Verify(ctx context.Context, body []byte) (Caller, error) {
	hash, err := c.v.hash(ctx, body)
	if err != nil {
		return Caller{}, err
	}
	if c.stated == "" {
		if err := c.compare(ctx, hash, int64(len(body))); err != nil {
			return Caller{}, err
		}
	} else if c.stated != hash {
		return Caller{}, mismatch()
	}
	return Caller{AccessKeyID: c.a.accessKeyID, Identity: c.c.Identity}, nil
}

// large is the size of bodies, in bytes, that are hashed in turns.
const large = 32 << 10

// hash returns a body's hash. Whoever sends it may have no key at all, and a name of one is no secret. So large bodies leave half of the
// processors to others.
func (v *Verifier) hash(ctx context.Context, body []byte) (string, error) {
	if len(body) < large {
		return hashHex(body), nil
	}
	v.prepare()
	select {
	case v.turns <- struct{}{}:
		defer func() { <-v.turns }()
		return hashHex(body), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// prepare makes what the verifier needs at its first use.
func (v *Verifier) prepare() {
	v.once.Do(func() {
		v.signer = v4.NewSigner()
		v.turns = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))
	})
}

// compare signs the request again, with a hash and a length of its body, and compares the signatures.
func (c *Claim) compare(ctx context.Context, hash string, length int64) error {
	signature, err := c.v.sign(ctx, c.head, c.a, c.c, hash, length)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(signature), []byte(c.a.signature)) == 0 {
		return mismatch()
	}
	return nil
}

func mismatch() error {
	return invalidSignature(
		"The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and " +
			"signing method.",
	)
}

// isHash reports whether a content hash is one: requests may say UNSIGNED-PAYLOAD instead.
func isHash(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size
}

func (v *Verifier) now() time.Time {
	if v.Now == nil {
		return time.Now()
	}
	return v.Now()
}

// Time returns what signatures' times are compared with. Without a verifier it's the machine's.
func (v *Verifier) Time() time.Time {
	if v == nil {
		return time.Now()
	}
	return v.now()
}

func invalidSignature(format string, args ...any) error {
	return refusal.New("InvalidSignatureException", format, args...)
}

// checkScope refuses a signature for another region or service, and one that doesn't cover the host and the target, which decide
// where the request goes.
func (v *Verifier) checkScope(a authorization, service string, h http.Header) error {
	switch {
	case !v.isFor(a.region, service):
		return invalidSignature("Credential should be scoped to the region %s, not %q.", v.Region, a.region)
	case a.service != service:
		return invalidSignature("Credential should be scoped to the service %s, not %q.", service, a.service)
	case !slices.Contains(a.signedHeaders, "host"):
		return invalidSignature("'Host' must be a 'SignedHeader' in the AWS Authorization.")
	case h.Get(TargetHeader) != "" && !slices.Contains(a.signedHeaders, strings.ToLower(TargetHeader)):
		return invalidSignature("'%s' must be a 'SignedHeader' in the AWS Authorization.", TargetHeader)
	}
	return nil
}

// isFor reports whether a signature for a region is for a service here.
func (v *Verifier) isFor(region, service string) bool {
	return region == v.Region || region != "" && region == v.Global[service]
}

// credential looks up the access key and checks the session token.
func (v *Verifier) credential(ctx context.Context, a authorization) (Credential, error) {
	c, err := v.Lookup(ctx, a.accessKeyID, a.sessionToken)
	switch {
	case errors.Is(err, ErrUnknownKey):
	case err != nil:
		return c, err
	case subtle.ConstantTimeCompare([]byte(c.SessionToken), []byte(a.sessionToken)) == 0:
	case !c.Expires.IsZero() && !v.now().Before(c.Expires):
		return c, refusal.New("ExpiredTokenException", "The security token included in the request is expired.")
	default:
		return c, nil
	}
	return c, refusal.New("UnrecognizedClientException", "The security token included in the request is invalid.")
}

// sign returns the signature that s should have, over the headers that were signed.
func (v *Verifier) sign(ctx context.Context, s Signed, a authorization, c Credential, hash string, length int64) (string, error) {
	v.prepare()
	r, err := s.request(ctx, a, length)
	if err != nil {
		return "", err
	}
	key := aws.Credentials{AccessKeyID: a.accessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}
	if a.presigned {
		signed, _, err := v.signer.PresignHTTP(ctx, key, r, hash, a.service, a.region, a.at)
		if err != nil {
			return "", err
		}
		_, query, _ := strings.Cut(signed, "?")
		values, err := url.ParseQuery(query)
		return values.Get("X-Amz-Signature"), err
	}
	if err := v.signer.SignHTTP(ctx, key, r, hash, a.service, a.region, a.at); err != nil {
		return "", err
	}
	_, signature, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
	return signature, nil
}

// request returns s as the request that its sender signed.
func (s Signed) request(ctx context.Context, a authorization, length int64) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, s.Method, "https://"+s.Host+s.Path, nil)
	if err != nil {
		return nil, refusal.New("IncompleteSignatureException", "The request's address could not be read.")
	}
	r.URL.RawQuery = s.RawQuery
	for _, name := range a.signedHeaders {
		switch name {
		case "host": // part of the address
		case "content-length":
			r.ContentLength = length
		default:
			r.Header[http.CanonicalHeaderKey(name)] = s.Header.Values(name)
		}
	}
	if a.presigned {
		query := r.URL.Query()
		query.Del("X-Amz-Signature")
		r.URL.RawQuery = query.Encode()
	}
	return r, nil
}
