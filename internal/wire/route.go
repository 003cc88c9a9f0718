package wire

import (
	"mime"
	"net/http"
	"strings"

	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/rest"
	"github.com/pintle/pintle/internal/wire/sign"
)

// route finds the API that a request is for, and the protocol that it is in: by its target or path,
// by the scope of its signature, by its host, and for a form, which need not be signed, by its Version.
// It reads the body on the way, no more of it than the API takes.
func (h *Handler) route(q *request) error {
	q.api = h.apiOf(q.Request)
	if err := q.readBody(); err != nil {
		return err
	}
	if q.api == nil && isForm(q.Request) {
		q.api = h.apiOfForm(q)
	}
	if q.api == nil {
		return refusal.New("UnknownOperationException", "The request is for no service that runs here: %s is %q, the signature is for %q.",
			sign.TargetHeader, q.Header.Get(sign.TargetHeader), sign.ScopeOf(q.Request))
	}
	q.protocol = q.api.protocolOf(q.Request)
	return nil
}

func (h *Handler) apiOf(r *http.Request) *API {
	if service, _ := rpcPath(r); service != "" {
		return h.byTarget[service]
	}
	if target := r.Header.Get(sign.TargetHeader); target != "" {
		prefix, _, _ := strings.Cut(target, ".")
		return h.byTarget[prefix]
	}
	if api := h.byName[sign.ScopeOf(r)]; api != nil {
		return api
	}
	host, _, _ := strings.Cut(r.Host, ".")
	return h.byName[host]
}

func (h *Handler) apiOfForm(q *request) *API {
	if q.parseForm() != nil {
		return nil
	}
	return h.byVersion[q.form.Get("Version")]
}

func isForm(r *http.Request) bool {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return r.Method == http.MethodGet || mediaType == "application/x-www-form-urlencoded"
}

// protocolOf is the first of the API's protocols that the request could be in.
func (a *API) protocolOf(r *http.Request) Protocol {
	for _, p := range a.Protocols {
		if p.claims(r) {
			return p
		}
	}
	return a.Protocols[0] // its own refusal says what is missing
}

// authenticate checks a request's signature, where the server has a verifier.
func (h *Handler) authenticate(q *request) (sign.Caller, error) {
	if h.opts.Verifier == nil {
		return sign.Unverified(q.Request), nil
	}
	return h.opts.Verifier.Verify(q.Context(), q.api.Name, sign.Signed{
		Method: q.Method, Path: q.URL.EscapedPath(), RawQuery: q.URL.RawQuery, Host: q.Host, Header: q.Header, Body: q.signed,
	})
}

// isREST says whether a request is for the API that is spoken in REST: its signature's scope says so, or
// nothing says that it is for another, and it has no form of its own.
func (h *Handler) isREST(r *http.Request) bool {
	if h.rest == nil {
		return false
	}
	if scope := sign.ScopeOf(r); scope != "" {
		return scope == h.rest.Api.Name
	}
	if r.Header.Get(sign.TargetHeader) != "" {
		return false
	}
	if service, _ := rpcPath(r); service != "" {
		return false
	}
	query := r.URL.Query()
	if query.Has("AWSAccessKeyId") || strings.HasPrefix(r.Header.Get("Authorization"), "AWS ") || rest.BucketOfHost(r.Host) != "" {
		return true
	}
	if _, pattern := h.mux.Handler(r); pattern != "" {
		return false
	}
	host, _, _ := strings.Cut(r.Host, ".")
	if api := h.byName[host]; api != nil {
		return api.Name == h.rest.Api.Name
	}
	return r.URL.Path != "/" && !query.Has("Action") // Query's clients call the root
}
