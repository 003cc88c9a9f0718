package sign

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/wire/refusal"
)

// authorization is what a header or a presigned URL's query says about its signature.
type authorization struct {
	accessKeyID   string
	date          string // of the scope, as 20060102
	region        string // of the scope
	service       string // of the scope
	signedHeaders []string
	signature     string
	at            time.Time
	sessionToken  string
	presigned     bool
	lifetime      time.Duration
}

// TargetHeader names the operation in AWS JSON. It decides where a request goes, so it must be signed.
const TargetHeader = "X-Amz-Target"

const (
	algorithm   = "AWS4-HMAC-SHA256"
	amzDate     = "20060102T150405Z"
	maxLifetime = 7 * 24 * time.Hour // of a presigned URL
)

// parseAuthorization parses a request's signature. Even with an error, it returns the access key ID and the scope if it could read
// them.
func parseAuthorization(h http.Header, rawQuery string) (authorization, error) {
	header := h.Get("Authorization")
	if header == "" && strings.Contains(rawQuery, "X-Amz-Algorithm=") {
		return parsePresigned(rawQuery)
	}
	if header == "" {
		return authorization{}, refusal.New("MissingAuthenticationTokenException", "Missing Authentication Token")
	}
	rest, ok := strings.CutPrefix(header, algorithm+" ")
	if !ok {
		return authorization{}, incomplete("Authorization header requires the algorithm %s.", algorithm)
	}
	a := authorization{lifetime: maxSkew, sessionToken: h.Get("X-Amz-Security-Token")}
	var credential, signedHeaders string
	for part := range strings.SplitSeq(rest, ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			signedHeaders = value
		case "Signature":
			a.signature = value
		}
	}
	return a, a.complete(credential, signedHeaders, h.Get("X-Amz-Date"))
}

// ScopeOf returns the service that a request was signed for, or "".
func ScopeOf(r *http.Request) string {
	a, _ := parseAuthorization(r.Header, r.URL.RawQuery)
	return a.service
}

// Unverified returns the caller that a request claims. Use it only where its signature isn't checked.
func Unverified(r *http.Request) Caller {
	return Caller{AccessKeyID: claimed(r)}
}

// claimed returns the access key that a request claims to be signed with.
func claimed(r *http.Request) string {
	if query := r.URL.Query(); query.Has("AWSAccessKeyId") {
		return query.Get("AWSAccessKeyId")
	}
	if a, _ := parseAuthorization(r.Header, r.URL.RawQuery); a.accessKeyID != "" {
		return a.accessKeyID
	}
	return keyOfOthers.FindString(r.Header.Get("Authorization"))
}

// keyOfOthers finds the access key in headers of kinds that aren't read here, such as S3's version 2: "AWS AKIA…:signature".
var keyOfOthers = regexp.MustCompile(`\b(AKIA|ASIA)[A-Z2-7]{16}\b`)

// parsePresigned parses the signature in a presigned URL's query.
func parsePresigned(rawQuery string) (authorization, error) {
	q, err := url.ParseQuery(rawQuery)
	if err != nil || q.Get("X-Amz-Algorithm") != algorithm {
		return authorization{}, incomplete("The query string requires X-Amz-Algorithm=%s.", algorithm)
	}
	a := authorization{presigned: true, lifetime: maxSkew, signature: q.Get("X-Amz-Signature"), sessionToken: q.Get("X-Amz-Security-Token")}
	if expires := q.Get("X-Amz-Expires"); expires != "" {
		seconds, err := strconv.Atoi(expires)
		a.lifetime = time.Duration(seconds) * time.Second
		if err != nil || seconds <= 0 || a.lifetime > maxLifetime {
			return a, incomplete("X-Amz-Expires must be a number of seconds, at most a week, not %q.", expires)
		}
	}
	return a, a.complete(q.Get("X-Amz-Credential"), q.Get("X-Amz-SignedHeaders"), q.Get("X-Amz-Date"))
}

// complete parses the fields that headers and presigned URLs have in common.
func (a *authorization) complete(credential, signedHeaders, at string) error {
	scope := strings.Split(credential, "/")
	a.accessKeyID = scope[0]
	if len(scope) != 5 || scope[0] == "" || scope[4] != "aws4_request" {
		return incomplete("Authorization requires a 'Credential' of key/date/region/service/aws4_request.")
	}
	a.date = scope[1]
	a.region = scope[2]
	a.service = scope[3]
	if signedHeaders == "" || a.signature == "" {
		return incomplete("Authorization requires 'SignedHeaders' and a 'Signature'.")
	}
	a.signedHeaders = strings.Split(signedHeaders, ";")
	t, err := time.Parse(amzDate, at)
	if err != nil {
		return incomplete("Authorization requires an 'X-Amz-Date' as %s.", amzDate)
	}
	a.at = t
	return nil
}

func incomplete(format string, args ...any) error {
	return refusal.New("IncompleteSignatureException", format, args...)
}

// checkTime refuses a signature that is too old, from the future, or has another date than its scope.
func (a *authorization) checkTime(now time.Time) error {
	switch {
	case a.at.Format("20060102") != a.date:
		return invalidSignature("Date in Credential scope does not match X-Amz-Date: %s is not of %s.", a.at.Format(amzDate), a.date)
	case now.Sub(a.at) > a.lifetime:
		return invalidSignature(
			"Signature expired: %s is more than %s before %s.", a.at.Format(amzDate), a.lifetime, now.UTC().Format(amzDate),
		)
	case a.at.Sub(now) > maxSkew:
		return invalidSignature(
			"Signature not yet current: %s is more than %s after %s.", a.at.Format(amzDate), maxSkew, now.UTC().Format(amzDate),
		)
	}
	return nil
}
