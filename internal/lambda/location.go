package lambda

import (
	"cmp"
	"context"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/wire/call"
)

// CodePath begins the URLs at which code is fetched. They are ENDPOINT, CodePath, the zip file's SHA-256, when they expire and a signature.
const CodePath = "/pintle/functioncode/"

// locationLasts is how long such a URL is good: API_FunctionCodeLocation.
const locationLasts = 10 * time.Minute

// location returns a URL from which whoever has it can fetch a zip file for a while, at the address at which the caller has found us.
func (s *Service) location(ctx context.Context, sha string) *string {
	expires := strconv.FormatInt(s.opts.Now().Add(locationLasts).Unix(), 10)
	url := cmp.Or(call.From(ctx).Endpoint, s.opts.Endpoint) + CodePath + sha + "?expires=" + expires + "&signature=" + base64.RawURLEncoding.EncodeToString(s.seal(sha, expires))
	return &url
}

func (s *Service) seal(sha, expires string) []byte { return s.opts.MAC(sha + "\x00" + expires) }

// ServeCode answers at the URLs of zip files.
func (s *Service) ServeCode(w http.ResponseWriter, r *http.Request) {
	sha, q := strings.TrimPrefix(r.URL.Path, CodePath), r.URL.Query()
	given, err := base64.RawURLEncoding.DecodeString(q.Get("signature"))
	expires, notNumber := strconv.ParseInt(q.Get("expires"), 10, 64)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "code is only fetched", http.StatusMethodNotAllowed)
		return
	case err != nil || notNumber != nil || !hmac.Equal(given, s.seal(sha, q.Get("expires"))):
		http.Error(w, "the URL's signature is wrong", http.StatusForbidden)
		return
	case s.opts.Now().Unix() >= expires:
		http.Error(w, "the URL has expired", http.StatusForbidden)
		return
	}
	f, err := s.opts.Zips.Open(sha)
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "the code isn't there any more", http.StatusNotFound)
		return
	}
	if err != nil {
		s.opts.Log.Error("cannot read a function's code", "error", err)
		http.Error(w, "the code can't be read", http.StatusInternalServerError)
		return
	}
	defer f.Close() //nolint:errcheck // it's only read
	w.Header().Set("Content-Type", "application/zip")
	http.ServeContent(w, r, "", time.Time{}, f)
}
