package wire

import (
	"mime"
	"net/http"
	"strings"

	"github.com/pintle/pintle/internal/awsname"
	"github.com/pintle/pintle/internal/wire/rest"
	"github.com/pintle/pintle/internal/wire/sign"
)

// route finds the API of a form that isn't signed by its Version, and then the request's protocol and operation.
func (h *Handler) route(q *request) (err error) {
	if q.api == nil && isForm(q.Request) {
		q.api = h.apiOfForm(q)
	}
	if q.api == nil {
		return h.refuseStranger(q.Request)
	}
	q.protocol = q.api.protocolOf(q.Request)
	q.operation, err = q.protocol.operation(q)
	return err
}

// apiOf finds a request's API without reading the body. It returns nil if nothing tells.
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
	return h.apiOfHost(r.Host)
}

// apiOfHost returns the API that a host's name belongs to, or nil. Names that aren't AWS's may begin with a service's, as sqs.localhost does.
func (h *Handler) apiOfHost(hostPort string) *served {
	host, _, _ := strings.Cut(hostPort, ":")
	if name, isAWS := awsname.Parse(host); isAWS {
		return h.byName[name.Service]
	}
	host, _, _ = strings.Cut(host, ".")
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

// protocolOf returns the first of the API's protocols that the request could be in.
func (a *served) protocolOf(r *http.Request) protocol {
	for _, p := range a.protocols {
		if p.claims(r) {
			return p
		}
	}
	return a.protocols[0] // that protocol's refusal says what is missing
}

// authenticate checks a request's signature and reads its body. With a verifier it reads a body only if the headers look signed.
// Requests that the verifier doesn't check are accepted.
func (h *Handler) authenticate(q *request) (sign.Caller, error) {
	if !h.opts.Verifier.Checks(q.Request) {
		return sign.Unverified(q.Request), q.readBody()
	}
	service := sign.ScopeOf(q.Request)
	if q.api != nil {
		service = q.api.Name
	} else if service != "" {
		return sign.Caller{}, h.refuseStranger(q.Request)
	}
	claim, err := h.opts.Verifier.Check(q.Context(), service, sign.HeadOf(q.Request), q.ContentLength)
	if err != nil {
		return sign.Caller{}, err
	}
	if err := q.readBody(); err != nil {
		return sign.Caller{}, err
	}
	return claim.Verify(q.Context(), q.body)
}

// couldBeLink reports whether a link, an image or a redirect could have made a program send the request. They reach any address, with any
// query, so a signature there tells nothing of who sent it; but they set no header.
func couldBeLink(r *http.Request) bool {
	return r.Method != http.MethodPost && r.Header.Get("Authorization") == ""
}

// onlyReads reports whether an operation's name says that it changes nothing. What could be a link must be harmless.
func onlyReads(operation string) bool {
	for _, verb := range []string{"Describe", "Get", "List"} {
		if strings.HasPrefix(operation, verb) {
			return true
		}
	}
	return false
}

// restOf returns the REST API that a request is for, or nil if it's for another kind. The scope of the signature or the host
// names the API. Otherwise each API says how sure it is from the path. An API with few paths comes before S3, where a bucket
// may have any name.
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
	if host, _, _ := strings.Cut(r.Host, ":"); awsname.IsAWS(awsname.Fold(host)) {
		if named := h.apiOfHost(r.Host); named != nil {
			return h.rest[named.Name]
		}
	}
	api, claim := h.claimed(r)
	if claim == rest.Surely {
		return api
	}
	if _, pattern := h.mux.Handler(r); pattern != "" {
		return nil
	}
	if named := h.apiOfHost(r.Host); named != nil {
		return h.rest[named.Name]
	}
	return api
}

// claimed returns the REST API that claims a request most surely.
func (h *Handler) claimed(r *http.Request) (best *rest.Handler, claim rest.Claim) {
	for _, api := range h.apis {
		candidate := h.rest[api.Name]
		if candidate == nil {
			continue
		}
		if c := candidate.Claims(r); c > claim {
			best = candidate
			claim = c
		}
	}
	return best, claim
}
