package ecr

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// User is the user name that goes with every token.
const User = "AWS"

// lifetime is how long a token is good: API_GetAuthorizationToken.
const lifetime = 12 * time.Hour

// token is what a password has, sealed: who got it, and until when it's good. It's stored nowhere.
type token struct {
	Caller      call.Identity
	AccessKeyID string `json:",omitempty"`
	Standing    string `json:",omitempty"`
	Expires     int64  // seconds since 1970
}

// GetAuthorizationToken returns a password for docker login. What it's good for is what its caller may do.
func (s *Service) GetAuthorizationToken(
	ctx context.Context, in *ecr.GetAuthorizationTokenInput,
) (*ecr.GetAuthorizationTokenOutput, error) {
	for _, id := range in.RegistryIds { //nolint:staticcheck // old clients send it
		if id != s.opts.ID {
			return nil, badParameter("registryIds", "Only the registry %s is here", s.opts.ID)
		}
	}
	by := call.From(ctx)
	standing, ok := s.standing(by)
	if !ok {
		return nil, badParameter("registryIds", "The caller's credentials have ended")
	}
	expires := s.now().Add(lifetime).Truncate(time.Second)
	password := s.seal(token{Caller: by.Identity, AccessKeyID: by.AccessKeyID, Standing: standing, Expires: expires.Unix()})
	return &ecr.GetAuthorizationTokenOutput{AuthorizationData: []types.AuthorizationData{{
		AuthorizationToken: aws.String(base64.StdEncoding.EncodeToString([]byte(User + ":" + password))),
		ExpiresAt:          &expires,
		ProxyEndpoint:      aws.String("https://" + s.Host()),
	}}}, nil
}

func (s *Service) standing(by call.Call) (string, bool) {
	if s.opts.Standing == nil {
		return "", true
	}
	return s.opts.Standing(by)
}

// ErrBadToken is Bearer's error for a password that isn't good, or no more.
var ErrBadToken = errors.New("the authorization token is not valid, or has expired")

// Bearer returns who got a password.
func (s *Service) Bearer(password string) (call.Identity, error) {
	body, seal, _ := strings.Cut(password, ".")
	mac, err := base64.RawURLEncoding.DecodeString(seal)
	if err != nil || !hmac.Equal(mac, s.opts.MAC("token\x00"+body)) {
		return call.Identity{}, ErrBadToken
	}
	var t token
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(text, &t) != nil {
		return call.Identity{}, ErrBadToken
	}
	standing, ok := s.standing(call.Call{Identity: t.Caller, AccessKeyID: t.AccessKeyID})
	if !ok || standing != t.Standing || s.now().Unix() >= t.Expires {
		return call.Identity{}, ErrBadToken
	}
	return t.Caller, nil
}

func (s *Service) seal(t token) string {
	text, _ := json.Marshal(t) // texts and numbers always marshal
	body := encode(text)
	return body + "." + encode(s.opts.MAC("token\x00"+body))
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// equal compares what must not be guessed byte by byte.
func equal(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }
