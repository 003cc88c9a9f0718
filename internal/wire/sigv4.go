package wire

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
)

// Credential is what the server knows of an access key.
type Credential struct {
	SecretAccessKey string
	SessionToken    string // must come with the request where it is set
	Arn             string // whose it is
}

// ErrUnknownKey is what a Verifier's Lookup returns for a key that it does not know.
var ErrUnknownKey = errors.New("unknown access key")

// Verifier checks SigV4 signatures: it signs the request again and compares.
type Verifier struct {
	Region string
	Now    func() time.Time
	// Lookup finds an access key; the session token is what came with the request.
	Lookup func(ctx context.Context, accessKeyID, sessionToken string) (Credential, error)
}

// maxSkew is how far a signature's time may be from the server's.
const maxSkew = 15 * time.Minute

// Signed is what of a request a signature covers. Web sockets' frames carry signatures of their own,
// so it is not an http.Request.
type Signed struct {
	Method, Path, RawQuery, Host string
	Header                       http.Header
	Body                         []byte
}

// Caller is who sent a request.
type Caller struct {
	AccessKeyID string
	Arn         string // empty where signatures are not checked
}

type callerKey struct{}

func withCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf is who sent the request that ctx belongs to.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// authenticate checks a request's signature where the server has a verifier.
func (h *Handler) authenticate(r *http.Request, api *API, body []byte) (Caller, error) {
	if h.opts.Verifier == nil {
		a, _ := parseAuthorization(r.Header, r.URL.Query())
		return Caller{AccessKeyID: a.accessKeyID}, nil
	}
	caller, err := h.opts.Verifier.Verify(r.Context(), api.Name, Signed{
		Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Host: r.Host, Header: r.Header, Body: body,
	})
	if err != nil && api.Protocol == Query {
		return caller, &statusError{http.StatusForbidden, queryAuthError(err)}
	}
	return caller, err
}

// queryAuthError is a refusal as the Query services say it.
func queryAuthError(err error) smithy.APIError {
	api, _ := asAPIError(err)
	code := map[string]string{
		"UnrecognizedClientException":         "InvalidClientTokenId",
		"InvalidSignatureException":           "SignatureDoesNotMatch",
		"MissingAuthenticationTokenException": "MissingAuthenticationToken",
		"IncompleteSignatureException":        "IncompleteSignature",
		"ExpiredTokenException":               "ExpiredToken",
	}[api.ErrorCode()]
	if code == "" {
		return api
	}
	return &smithy.GenericAPIError{Code: code, Message: api.ErrorMessage(), Fault: smithy.FaultClient}
}

// authorization is what a signature says of itself.
type authorization struct {
	accessKeyID           string
	date, region, service string // the credential scope
	signedHeaders         []string
	signature             string
	presigned             bool
	signedAt              string
}

const algorithm = "AWS4-HMAC-SHA256"

// parseAuthorization reads the Authorization header, or a presigned URL's query.
func parseAuthorization(h http.Header, q url.Values) (authorization, error) {
	var a authorization
	fields := map[string]string{}
	switch header := h.Get("Authorization"); {
	case strings.HasPrefix(header, algorithm+" "):
		for part := range strings.SplitSeq(header[len(algorithm)+1:], ",") {
			k, v, _ := strings.Cut(strings.TrimSpace(part), "=")
			fields[k] = v
		}
		a.signedAt = h.Get("X-Amz-Date")
	case q.Get("X-Amz-Algorithm") == algorithm:
		fields["Credential"], fields["SignedHeaders"], fields["Signature"] = q.Get("X-Amz-Credential"), q.Get("X-Amz-SignedHeaders"), q.Get("X-Amz-Signature")
		a.presigned, a.signedAt = true, q.Get("X-Amz-Date")
	case header != "":
		return a, clientError("IncompleteSignatureException", "The Authorization header does not begin with %s.", algorithm)
	default:
		return a, clientError("MissingAuthenticationTokenException", "Missing Authentication Token: the request is not signed.")
	}
	scope := strings.Split(fields["Credential"], "/")
	if len(scope) != 5 || scope[4] != "aws4_request" || fields["SignedHeaders"] == "" || fields["Signature"] == "" || a.signedAt == "" {
		return a, clientError("IncompleteSignatureException", "The signature needs a Credential of key/date/region/service/aws4_request, SignedHeaders, a Signature and X-Amz-Date.")
	}
	a.accessKeyID, a.date, a.region, a.service = scope[0], scope[1], scope[2], scope[3]
	a.signedHeaders, a.signature = strings.Split(fields["SignedHeaders"], ";"), fields["Signature"]
	return a, nil
}

// credentialScope is the service that a request was signed for, or "".
func credentialScope(r *http.Request) string {
	a, err := parseAuthorization(r.Header, r.URL.Query())
	if err != nil {
		return ""
	}
	return a.service
}

// Verify checks the signature over s, made for the service, and says whose it is.
func (v *Verifier) Verify(ctx context.Context, service string, s Signed) (Caller, error) {
	query, err := url.ParseQuery(s.RawQuery)
	if err != nil {
		return Caller{}, clientError("IncompleteSignatureException", "The query string could not be read.")
	}
	a, err := parseAuthorization(s.Header, query)
	if err != nil {
		return Caller{}, err
	}
	if a.service != service || a.region != v.Region {
		return Caller{}, invalidSignature("Credential should be scoped to region %s and service %s, not to %s and %s.", v.Region, service, a.region, a.service)
	}
	at, err := v.checkTime(a, query)
	if err != nil {
		return Caller{}, err
	}
	token := s.Header.Get("X-Amz-Security-Token")
	if a.presigned {
		token = query.Get("X-Amz-Security-Token")
	}
	c, err := v.Lookup(ctx, a.accessKeyID, token)
	if errors.Is(err, ErrUnknownKey) || err == nil && subtle.ConstantTimeCompare([]byte(c.SessionToken), []byte(token)) == 0 {
		return Caller{}, clientError("UnrecognizedClientException", "The security token included in the request is invalid.")
	}
	if err != nil {
		return Caller{}, err
	}
	want, err := resign(ctx, s, query, a, c, at)
	if err != nil {
		return Caller{}, err
	}
	if subtle.ConstantTimeCompare([]byte(want), []byte(a.signature)) == 0 {
		return Caller{}, invalidSignature("The request signature we calculated does not match the signature you provided. Check your secret access key and signing method.")
	}
	return Caller{AccessKeyID: a.accessKeyID, Arn: c.Arn}, nil
}

func invalidSignature(format string, args ...any) error {
	return clientError("InvalidSignatureException", format, args...)
}

const amzDate = "20060102T150405Z"

// checkTime refuses a signature that is too old or from the future.
func (v *Verifier) checkTime(a authorization, query url.Values) (time.Time, error) {
	at, err := time.Parse(amzDate, a.signedAt)
	if err != nil || !strings.HasPrefix(a.signedAt, a.date) {
		return at, clientError("IncompleteSignatureException", "X-Amz-Date %q is no date, or not the credential's.", a.signedAt)
	}
	lifetime := maxSkew
	if a.presigned {
		if d, err := time.ParseDuration(query.Get("X-Amz-Expires") + "s"); err == nil && d > 0 && d <= 7*24*time.Hour {
			lifetime = d
		}
	}
	now := v.Now()
	if now.Sub(at) > lifetime || at.Sub(now) > maxSkew {
		return at, invalidSignature("Signature expired: %s is not within %s of %s, the time here.", a.signedAt, lifetime, now.UTC().Format(amzDate))
	}
	return at, nil
}

// resign makes the signature that the request should have: with its own headers, those that were
// signed and no others.
func resign(ctx context.Context, s Signed, query url.Values, a authorization, c Credential, at time.Time) (string, error) {
	r, err := http.NewRequestWithContext(ctx, s.Method, "https://"+s.Host+s.Path+"?"+s.RawQuery, nil)
	if err != nil {
		return "", clientError("IncompleteSignatureException", "The request's address could not be read.")
	}
	host := false
	for _, name := range a.signedHeaders {
		switch name {
		case "host":
			host = true
		case "content-length":
			r.ContentLength = int64(len(s.Body))
		default:
			r.Header[http.CanonicalHeaderKey(name)] = s.Header.Values(name)
		}
	}
	if !host {
		return "", invalidSignature("'Host' must be a 'SignedHeader' in the AWS Authorization.")
	}
	signer := v4.NewSigner()
	key := aws.Credentials{AccessKeyID: a.accessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}
	if a.presigned {
		query.Del("X-Amz-Signature")
		r.URL.RawQuery = query.Encode()
		signed, _, err := signer.PresignHTTP(ctx, key, r, payloadHash(s), a.service, a.region, at)
		if err != nil {
			return "", err
		}
		u, err := url.Parse(signed)
		if err != nil {
			return "", err
		}
		return u.Query().Get("X-Amz-Signature"), nil
	}
	if err := signer.SignHTTP(ctx, key, r, payloadHash(s), a.service, a.region, at); err != nil {
		return "", err
	}
	_, signature, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
	return signature, nil
}

// payloadHash is always that of the body that came, whatever the request says of it.
func payloadHash(s Signed) string {
	sum := sha256.Sum256(s.Body)
	return hex.EncodeToString(sum[:])
}
