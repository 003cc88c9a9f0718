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

func (h *Handler) apiOf(r *http.Request) *served {
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

func (h *Handler) apiOfForm(q *request) *served {
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
func (a *served) protocolOf(r *http.Request) protocol {
	for _, p := range a.protocols {
		if p.claims(r) {
			return p
		}
	}
	return a.protocols[0] // its own refusal says what is missing
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

// restOf is the API in REST that a request is for; nil where it is for another. The scope of its signature says so, or its
// host, or the API knows its own: an API of few paths before S3, where a bucket may have any name.
func (h *Handler) restOf(r *http.Request) *rest.Handler {
	if scope := sign.ScopeOf(r); scope != "" {
		return h.rest[scope]
	}
	if r.Header.Get(sign.TargetHeader) != "" {
		return nil
	}
	if service, _ := rpcPath(r); service != "" {
		return nil
	}
	api, claim := h.claimed(r)
	if claim == rest.Surely {
		return api
	}
	if _, pattern := h.mux.Handler(r); pattern != "" {
		return nil
	}
	host, _, _ := strings.Cut(r.Host, ".")
	if named := h.byName[host]; named != nil {
		return h.rest[named.Name]
	}
	return api
}

// claimed is the API in REST that is surest of a request.
func (h *Handler) claimed(r *http.Request) (best *rest.Handler, claim rest.Claim) {
	for _, api := range h.apis {
		candidate := h.rest[api.Name]
		if candidate == nil {
			continue
		}
		if c := candidate.Claims(r); c > claim {
			best, claim = candidate, c
		}
	}
	return best, claim
}
