package pages

import (
	"errors"
	"net"
	"net/http"
	"path"
	"strings"

	"github.com/pintle/pintle/internal/console/login"
	"github.com/pintle/pintle/internal/console/markup"
)

// plainHTTP is said to those whose secret anybody on the way could read.
const plainHTTP = "The console takes no secrets over plain HTTP from other machines. Start pintle with TLS (--tls auto), or come through a tunnel: " +
	"ssh -L 4566:127.0.0.1:4566 HOST, and then http://localhost:4566/console/."

// serveLogin shows the form to log in.
func (p *Pages) serveLogin(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if p.opts.Sessions.IsOpen() {
		http.Redirect(w, r, "/console/", http.StatusSeeOther)
		return
	}
	p.showLogin(w, http.StatusOK, r.URL.Query().Get("next"), "")
}

func (p *Pages) showLogin(w http.ResponseWriter, status int, next, problem string) {
	content := markup.Group{}
	if problem != "" {
		content = append(content, failure(problem))
	}
	content = append(content, markup.E("form", markup.Class("login"), markup.A("method", "post"), markup.A("action", "/console/login"),
		markup.E("input", markup.A("type", "hidden"), markup.A("name", "next"), markup.A("value", next)),
		markup.E("label", "Access key ID", markup.E("input", markup.A("name", "id"), markup.A("autocomplete", "username"), markup.If("required", true), markup.A("spellcheck", "false"))),
		markup.E("label", "Secret access key", markup.E("input", markup.A("name", "secret"), markup.A("type", "password"), markup.A("autocomplete", "current-password"), markup.If("required", true))),
		markup.E("label", "Session token, of a temporary key (ASIA…)", markup.E("input", markup.A("name", "session-token"), markup.A("type", "password"), markup.A("autocomplete", "off"))),
		markup.E("button", "Log in"),
	))
	p.show(w, nil, status, document{title: "Log in", content: content})
}

// serveBegin logs in.
func (p *Pages) serveBegin(w http.ResponseWriter, r *http.Request) {
	p.fromHere(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next := r.PostFormValue("next")
		if !isSecret(r) {
			p.showLogin(w, http.StatusForbidden, next, plainHTTP)
			return
		}
		if p.opts.Sessions.IsOpen() {
			http.Redirect(w, r, "/console/", http.StatusSeeOther)
			return
		}
		typed := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
		switch err := p.opts.Sessions.Begin(w, r, typed("id"), typed("secret"), typed("session-token")); {
		case errors.Is(err, login.ErrTooMany):
			p.showLogin(w, http.StatusTooManyRequests, next, err.Error())
		case err != nil:
			p.showLogin(w, http.StatusForbidden, next, err.Error())
		default:
			http.Redirect(w, r, here(next), http.StatusSeeOther)
		}
	})).ServeHTTP(w, r)
}

// here returns an address if it's one of the console's pages, and otherwise the console's first.
func here(next string) string {
	at, _, _ := strings.Cut(next, "?")
	if strings.HasPrefix(next, "/console/") && strings.HasPrefix(path.Clean(at)+"/", "/console/") && !strings.ContainsAny(next, "\\\r\n") {
		return next
	}
	return "/console/"
}

// isSecret reports whether nobody on the way can read a request.
func isSecret(r *http.Request) bool {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	return r.TLS != nil || ip != nil && ip.IsLoopback()
}

// serveEnd logs out.
func (p *Pages) serveEnd(w http.ResponseWriter, v *visit) {
	v.r.Body = http.MaxBytesReader(w, v.r.Body, maxForm)
	if !v.session.Knows(v.form("token")) {
		p.refuse(w, http.StatusForbidden, "The form isn't of this session.")
		return
	}
	p.opts.Sessions.End(w, v.r)
	http.Redirect(w, v.r, "/console/login", http.StatusSeeOther)
}
