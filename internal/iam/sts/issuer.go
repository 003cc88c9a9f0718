package sts

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/account"
)

// Issuer makes temporary credentials for tasks, and knows them again. It keeps nothing: what must be
// known of a set stands in its session token, sealed with the issuer's key, and so does what its secret
// is derived from.
type Issuer struct {
	key     []byte
	account account.Account
}

// NewIssuer returns an issuer with a secret key of at least 32 bytes that lasts.
func NewIssuer(key []byte, whose account.Account) (*Issuer, error) {
	if len(key) < sha256.Size {
		return nil, errors.New("the key for task credentials is shorter than 32 bytes")
	}
	return &Issuer{key, whose}, nil
}

// Credentials are a set of temporary credentials.
type Credentials struct {
	ID              string // names the set within its node: stable for a task, and not to be guessed
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string
	Expires         time.Time
}

// lifetime is how long ECS's task credentials last.
const lifetime = 6 * time.Hour

// session is what a session token says.
type session struct {
	AccessKeyID string `json:"k"`
	Role        string `json:"r"`
	Task        string `json:"t"`
	Expires     int64  `json:"e"` // seconds since 1970
}

// Issue makes credentials of a role for a task.
func (i *Issuer) Issue(taskArn, roleArn, roleType string) Credentials {
	expires := i.account.Now().Add(lifetime).Truncate(time.Second).UTC()
	id := i.mac("access key", taskArn, roleType, expires.String())
	s := session{"ASIA" + base32.StdEncoding.EncodeToString(id)[:16], roleArn, taskArn, expires.Unix()}
	b, _ := json.Marshal(s) // strings and a number cannot fail
	body := base64.RawURLEncoding.EncodeToString(b)
	token := body + "." + base64.RawURLEncoding.EncodeToString(i.mac("token", body))
	return Credentials{
		ID: hex.EncodeToString(i.mac("id", taskArn, roleType)[:16]), AccessKeyID: s.AccessKeyID,
		SecretAccessKey: i.secret(token), SessionToken: token, Expires: expires,
	}
}

// ErrUnknown is the error of Lookup for what this issuer has not made.
var ErrUnknown = errors.New("unknown credentials")

// Lookup gives the secret, the caller's ARN and the end of credentials that this issuer has made.
func (i *Issuer) Lookup(accessKeyID, token string) (secret, arn string, expires time.Time, err error) {
	body, seal, _ := strings.Cut(token, ".")
	mac, err := base64.RawURLEncoding.DecodeString(seal)
	if err != nil || !hmac.Equal(mac, i.mac("token", body)) {
		return "", "", expires, ErrUnknown
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return "", "", expires, ErrUnknown
	}
	var s session
	if json.Unmarshal(b, &s) != nil || s.AccessKeyID != accessKeyID {
		return "", "", expires, ErrUnknown
	}
	return i.secret(token), i.arn(s), time.Unix(s.Expires, 0), nil
}

// arn is how STS names the session of an assumed role.
func (i *Issuer) arn(s session) string {
	return i.account.GlobalARN("sts", "assumed-role/"+last(s.Role)+"/"+last(s.Task))
}

func last(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

func (i *Issuer) secret(token string) string {
	return base64.StdEncoding.EncodeToString(i.mac("secret", token))
}

// mac seals its parts, each for a purpose of its own.
func (i *Issuer) mac(purpose string, parts ...string) []byte {
	h := hmac.New(sha256.New, i.key)
	h.Write([]byte(purpose))
	for _, p := range parts {
		h.Write([]byte{0})
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}
