package sts

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
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

// Issuer makes temporary credentials for tasks, for instances and for those who assume roles, and recognizes them later. It stores nothing. The session token has everything that
// Lookup needs, sealed with the issuer's key. The secret is derived from the token.
type Issuer struct {
	key     []byte
	account account.Account
}

// NewIssuer returns an issuer with a secret key of at least 32 bytes. With another key, credentials issued before become invalid.
func NewIssuer(key []byte, a account.Account) (*Issuer, error) {
	if len(key) < sha256.Size {
		return nil, errors.New("the key for task credentials is shorter than 32 bytes")
	}
	return &Issuer{key, a}, nil
}

// Credentials are a set of temporary credentials.
type Credentials struct {
	ID              string // names the set within its node: stable for a task, and impossible to guess
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string
	Expires         time.Time
}

// lifetime is how long ECS's task credentials last.
const lifetime = 6 * time.Hour

// session is the content of a session token.
type session struct {
	AccessKeyID string `json:"k"`
	Role        string `json:"r"`
	Task        string `json:"t,omitempty"`
	Name        string `json:"n,omitempty"` // of a session that nobody but AssumeRole made
	Instance    string `json:"m,omitempty"` // whose role's they are
	RoleID      string `json:"i,omitempty"` // of its role, if that's a row
	Session     string `json:"p,omitempty"` // what it has besides, as package iam writes it
	Expires     int64  `json:"e"`           // seconds since 1970
}

// Issue makes credentials for a task in a role. roleID is the role's unique id, if it has one.
func (i *Issuer) Issue(taskArn, roleArn, roleID, roleType string) Credentials {
	expires := i.account.Now().Add(lifetime).Truncate(time.Second).UTC()
	id := i.mac("access key", taskArn, roleArn, roleID, roleType, expires.String())
	c := i.seal(session{AccessKeyID: keyID(id), Role: roleArn, RoleID: roleID, Task: taskArn, Expires: expires.Unix()})
	c.ID = hex.EncodeToString(i.mac("id", taskArn, roleType)[:16])
	return c
}

// IssueInstance makes credentials for an EC2 instance in its role. roleID is the role's unique id.
func (i *Issuer) IssueInstance(instanceID, roleArn, roleID string) Credentials {
	expires := i.account.Now().Add(lifetime).Truncate(time.Second).UTC()
	id := i.mac("instance's access key", instanceID, roleArn, roleID, expires.String())
	return i.seal(session{AccessKeyID: keyID(id), Role: roleArn, RoleID: roleID, Instance: instanceID, Expires: expires.Unix()})
}

// Assumed is what AssumeRole knows of a session.
type Assumed struct {
	Role    string // its ARN
	RoleID  string // its unique id, if it has one
	Name    string
	Task    string // the ARN of the task that assumes the role, or ""
	Lasts   time.Duration
	Session string // what it has besides its role, as package iam writes it; "" for nothing
}

// Assume makes credentials for a session of a role. If a task assumes it, they are still the task's: they can do no more than it may, and
// end with it.
func (i *Issuer) Assume(a Assumed) Credentials {
	var id [sha256.Size]byte
	rand.Read(id[:]) // never fails
	expires := i.account.Now().Add(a.Lasts).Truncate(time.Second).UTC()
	return i.seal(session{
		AccessKeyID: keyID(id[:]),
		Role:        a.Role,
		Task:        a.Task,
		Name:        a.Name,
		RoleID:      a.RoleID,
		Session:     a.Session,
		Expires:     expires.Unix(),
	})
}

func keyID(id []byte) string { return "ASIA" + base32.StdEncoding.EncodeToString(id)[:16] }

// seal makes the credentials that stand for a session.
func (i *Issuer) seal(s session) Credentials {
	b, _ := json.Marshal(s) // strings and numbers always marshal
	body := base64.RawURLEncoding.EncodeToString(b)
	token := body + "." + base64.RawURLEncoding.EncodeToString(i.mac("token", body))
	return Credentials{
		AccessKeyID:     s.AccessKeyID,
		SecretAccessKey: i.secret(token),
		SessionToken:    token,
		Expires:         time.Unix(s.Expires, 0).UTC(),
	}
}

// ErrUnknown is Lookup's error for credentials that this issuer didn't make.
var ErrUnknown = errors.New("unknown credentials")

// Session is what credentials that an issuer made stand for.
type Session struct {
	SecretAccessKey string
	Arn             string // of the session, as GetCallerIdentity tells it
	Task            string // the ARN of the task that has the credentials, or had them when it called AssumeRole; else ""
	Instance        string // the id of the instance that has the credentials, or ""
	Role            string // the ARN of the role that they are for
	RoleID          string // its unique id, if it had one
	Session         string // what the session has besides its role, as package iam writes it
	Expires         time.Time
}

// Lookup returns the session of credentials that this issuer made.
func (i *Issuer) Lookup(accessKeyID, token string) (Session, error) {
	body, seal, _ := strings.Cut(token, ".")
	mac, err := base64.RawURLEncoding.DecodeString(seal)
	if err != nil || !hmac.Equal(mac, i.mac("token", body)) {
		return Session{}, ErrUnknown
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return Session{}, ErrUnknown
	}
	var s session
	if json.Unmarshal(b, &s) != nil || s.AccessKeyID != accessKeyID {
		return Session{}, ErrUnknown
	}
	return Session{
		SecretAccessKey: i.secret(token),
		Arn:             i.arn(s),
		Task:            s.Task,
		Instance:        s.Instance,
		Role:            s.Role,
		RoleID:          s.RoleID,
		Session:         s.Session,
		Expires:         time.Unix(s.Expires, 0),
	}, nil
}

// arn returns STS's ARN for the session of an assumed role.
func (i *Issuer) arn(s session) string {
	return i.account.GlobalARN("sts", "assumed-role/"+last(s.Role)+"/"+cmp.Or(s.Name, last(s.Task), s.Instance))
}

func last(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

// NodeSecret returns the secret of a node's access key.
func (i *Issuer) NodeSecret(accessKeyID string) string {
	return base64.StdEncoding.EncodeToString(i.mac("node secret", accessKeyID))
}

// RegistryMAC seals the passwords of the image registry.
func (i *Issuer) RegistryMAC(text string) []byte { return i.mac("registry token", text) }

// FunctionCodeMAC seals the URLs of functions' code.
func (i *Issuer) FunctionCodeMAC(text string) []byte { return i.mac("function code", text) }

// CookieKey is what load balancers seal their cookies with.
func (i *Issuer) CookieKey() []byte { return i.mac("load balancers' cookies") }

func (i *Issuer) secret(token string) string {
	return base64.StdEncoding.EncodeToString(i.mac("secret", token))
}

// mac returns a MAC of the parts. Different purposes give different MACs.
func (i *Issuer) mac(purpose string, parts ...string) []byte {
	h := hmac.New(sha256.New, i.key)
	h.Write([]byte(purpose))
	for _, p := range parts {
		h.Write([]byte{0})
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}
