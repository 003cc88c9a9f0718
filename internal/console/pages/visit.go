package pages

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/login"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/connection"
)

// visit is a request of somebody who may look.
type visit struct {
	ctx     context.Context // carries who it is
	r       *http.Request
	pages   *Pages
	session *login.Session
}

// forVisitors serves those who have logged in and sends others to do so. What changes something must bring the session's token and come from
// the console's own pages.
func (p *Pages) forVisitors(serve func(http.ResponseWriter, *visit)) http.Handler {
	return p.fromHere(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session := p.opts.Sessions.Of(r)
		switch {
		case session == nil && r.Method == http.MethodGet:
			http.Redirect(w, r, "/console/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
			return
		case session == nil:
			p.refuse(w, http.StatusForbidden, "Your session is over. Log in again.")
			return
		}
		connection.Know(r.Context())
		serve(w, p.visit(r, session))
	}))
}

// fromHere refuses what other sites' pages send, and sets the headers of all answers.
func (p *Pages) fromHere(next http.Handler) http.Handler {
	guarded := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		guarded.ServeHTTP(w, r)
	})
}

// secure sets the headers by which browsers run and load nothing but the console's own files.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

func (p *Pages) visit(r *http.Request, s *login.Session) *visit {
	ctx := call.With(r.Context(), call.Call{
		AccessKeyID: s.AccessKeyID, Peer: r.RemoteAddr, Endpoint: call.EndpointOf(r), Identity: s.Identity,
	})
	return &visit{ctx: ctx, r: r, pages: p, session: s}
}

// path returns a part of the path, and query what follows it.
func (v *visit) path(name string) string  { return v.r.PathValue(name) }
func (v *visit) query(name string) string { return v.r.URL.Query().Get(name) }

// form returns a value of the form that an action does.
func (v *visit) form(name string) string { return v.r.PostFormValue(name) }

// view returns the rows.
func (v *visit) view() *state.View { return v.pages.opts.Store.View() }

// mayAct reports whether anything can be done here.
func (v *visit) mayAct() bool { return !v.pages.opts.ReadOnly }

// key tells pages apart that aren't the same for everybody: by who looks, from where and whether over TLS, on which policies may depend, and by
// what they look at.
func (v *visit) key() string {
	q := v.r.URL.Query()
	q.Del("live")
	by := call.From(v.ctx)
	host, _, _ := net.SplitHostPort(by.Peer)
	return strings.Join([]string{by.AccessKeyID, by.Principal, host, by.Endpoint, v.r.URL.Path, q.Encode()}, "\n")
}

// ask calls the operation of which in is the input, as whoever visits.
func ask[Out any](v *visit, in any) (*Out, error) {
	got, err := v.pages.opts.Services.Call(v.ctx, in)
	if err != nil {
		return nil, err
	}
	out, ok := got.(*Out)
	if !ok {
		return nil, fmt.Errorf("%T answers with %T", in, got)
	}
	return out, nil
}

// errNotFound means that there is nothing to show.
type errNotFound string

func (e errNotFound) Error() string { return string(e) }

// errBadForm means that a form has something wrong in it.
type errBadForm string

func (e errBadForm) Error() string { return string(e) }

// sayOf returns what to say of an error, and the status to say it with.
func sayOf(err error) (status int, text string) {
	var missing errNotFound
	var bad errBadForm
	var api smithy.APIError
	switch {
	case errors.As(err, &missing):
		return http.StatusNotFound, err.Error()
	case errors.As(err, &bad):
		return http.StatusBadRequest, err.Error()
	case errors.Is(err, live.ErrFull):
		return http.StatusServiceUnavailable, err.Error()
	case !errors.As(err, &api):
		return http.StatusInternalServerError, err.Error()
	case strings.Contains(api.ErrorCode(), "AccessDenied"):
		status = http.StatusForbidden
	case strings.Contains(api.ErrorCode(), "NotFound"), strings.HasPrefix(api.ErrorCode(), "NoSuch"):
		status = http.StatusNotFound
	case api.ErrorFault() == smithy.FaultServer:
		status = http.StatusInternalServerError
	default:
		status = http.StatusBadRequest
	}
	return status, api.ErrorCode() + ": " + api.ErrorMessage()
}
