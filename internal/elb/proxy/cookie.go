package proxy

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"
)

// cookies seals what stickiness cookies say, so that clients can neither read nor choose it.
type cookies struct {
	key  [sha256.Size]byte
	aead cipher.AEAD
}

// newCookies makes them of a key, or else of the key before, or of one of the proxy's own.
func newCookies(key []byte, before *cookies) *cookies {
	if len(key) == 0 && before != nil {
		return before
	}
	if len(key) == 0 {
		key = make([]byte, 32)
		rand.Read(key) //nolint:errcheck // it never fails
	}
	c := &cookies{key: sha256.Sum256(key)}
	block, err := aes.NewCipher(c.key[:])
	if err != nil {
		panic(err) // the key's length is right
	}
	if c.aead, err = cipher.NewGCM(block); err != nil {
		panic(err) // the block's is
	}
	return c
}

// seal returns a cookie's value. It counts for this name and scope alone, until it expires.
func (c *cookies) seal(name, scope, value string, expires time.Time) string {
	nonce := make([]byte, c.aead.NonceSize(), 128)
	rand.Read(nonce) //nolint:errcheck // it never fails
	plain := binary.BigEndian.AppendUint64(nil, uint64(expires.Unix()))
	return base64.RawURLEncoding.EncodeToString(c.aead.Seal(nonce, nonce, append(plain, value...), []byte(name+"\x00"+scope)))
}

// open returns what a cookie says, or nothing.
func (c *cookies) open(name, scope, sealed string, now time.Time) (string, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(raw) < c.aead.NonceSize() {
		return "", false
	}
	plain, err := c.aead.Open(nil, raw[:c.aead.NonceSize()], raw[c.aead.NonceSize():], []byte(name+"\x00"+scope))
	if err != nil || len(plain) < 8 || now.Unix() >= int64(binary.BigEndian.Uint64(plain)) {
		return "", false
	}
	return string(plain[8:]), true
}

// The names of cookies. Each has a twin for requests from pages of other origins, as AWS's have.
const (
	targetCookie = "AWSALB"
	groupCookie  = "AWSALBTG"
	appCookie    = "AWSALBAPP-0"
	twin         = "CORS"
)

// remembered returns what a client's cookie says.
func (x *exchange) remembered(name, scope string) (string, bool) {
	for _, n := range []string{name, name + twin} {
		for _, c := range x.request.CookiesNamed(n) {
			if value, ok := x.cookies.open(name, scope, c.Value, x.start); ok {
				return value, true
			}
		}
	}
	return "", false
}

// remember sets a cookie for a client.
func (x *exchange) remember(h http.Header, name, scope, value string, seconds int) {
	expires := x.start.Add(time.Duration(seconds) * time.Second)
	sealed := x.cookies.seal(name, scope, value, expires)
	c := &http.Cookie{Name: name, Value: sealed, Path: "/", Expires: expires}
	h.Add("Set-Cookie", c.String())
	if name == appCookie {
		return
	}
	c.Name += twin
	c.SameSite = http.SameSiteNoneMode
	c.Secure = x.request.TLS != nil
	h.Add("Set-Cookie", c.String())
}
