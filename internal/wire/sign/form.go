package sign

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"

	"github.com/pintle/pintle/internal/wire/refusal"
)

// VerifyForm checks the signature of a form that uploads an object, which covers the form's policy alone:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-UsingHTTPPOST.html
// The fields' names have small letters. Forms may have signatures of version 2, which are still boto3's default. It
// accepts those that the verifier doesn't check.
func VerifyForm(v *Verifier, r *http.Request, service string, fields map[string]string) (Caller, error) {
	policy := fields["policy"]
	claim := authorization{accessKeyID: fields["awsaccesskeyid"]}
	if claim.accessKeyID == "" {
		claim.complete(fields["x-amz-credential"], "", "") //nolint:errcheck // the key is a claim
	}
	if !v.checks(claim.accessKeyID) {
		return Caller{AccessKeyID: claim.accessKeyID}, nil
	}
	if policy == "" {
		return Caller{}, refusal.With(http.StatusForbidden, "AccessDenied", "Access Denied")
	}
	a := authorization{accessKeyID: fields["awsaccesskeyid"], sessionToken: fields["x-amz-security-token"]}
	isV2 := a.accessKeyID != ""
	if !isV2 {
		if fields["x-amz-algorithm"] != algorithm {
			return Caller{}, refusal.New("InvalidArgument", "X-Amz-Algorithm only supports %q", algorithm)
		}
		a.signature = fields["x-amz-signature"]
		if err := a.complete(fields["x-amz-credential"], "host", fields["x-amz-date"]); err != nil {
			return Caller{}, err
		}
		if err := v.checkScopeREST(a, service, http.Header{}); err != nil {
			return Caller{}, err
		}
		if a.at.Format("20060102") != a.date {
			return Caller{}, invalidSignature("Date in Credential scope does not match X-Amz-Date.")
		}
	}
	c, err := v.credential(r.Context(), a)
	if err != nil {
		return Caller{}, err
	}
	if isV2 && !isSignedV2(policy, c.SecretAccessKey, fields["signature"]) || !isV2 && !isSignedV4(policy, c.SecretAccessKey, a) {
		return Caller{}, noMatch()
	}
	return Caller{AccessKeyID: a.accessKeyID, Identity: c.Identity}, nil
}

func isSignedV2(policy, secret, signature string) bool {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(policy))
	given, err := base64.StdEncoding.DecodeString(signature)
	return err == nil && hmac.Equal(given, mac.Sum(nil))
}

func isSignedV4(policy, secret string, a authorization) bool {
	want := hex.EncodeToString(hmacOf(signingKey(secret, a), policy))
	return subtle.ConstantTimeCompare([]byte(want), []byte(a.signature)) == 1
}
