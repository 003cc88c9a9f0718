package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/pintle/pintle/internal/console/markup"
)

//go:embed assets
var assets embed.FS

// assetVersion changes with the assets, so browsers may keep them.
var assetVersion = func() string {
	h := sha256.New()
	for _, name := range []string{"console.js", "console.css", "icon.svg"} {
		b, _ := assets.ReadFile("assets/" + name) // it's embedded
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}()

// document is a whole page.
type document struct {
	title   string
	content markup.Node
	version string // of what is kept up to date; "" if nothing is
}

// show answers with a document.
func (p *Pages) show(w http.ResponseWriter, v *visit, status int, d document) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	b := append([]byte(nil), "<!doctype html>"...)
	w.Write(p.html(v, d).Append(b)) //nolint:errcheck // nobody is left to tell
}

func (p *Pages) html(v *visit, d document) markup.Node {
	live := markup.If("data-live", false)
	if d.version != "" {
		live = markup.A("data-live", d.version)
	}
	token := ""
	if v != nil {
		token = v.session.Token
	}
	return markup.E("html", markup.A("lang", "en"),
		markup.E("head",
			markup.E("meta", markup.A("charset", "utf-8")),
			markup.E("meta", markup.A("name", "viewport"), markup.A("content", "width=device-width, initial-scale=1")),
			markup.E("meta", markup.A("name", "color-scheme"), markup.A("content", "light dark")),
			markup.E("meta", markup.A("name", "token"), markup.A("content", token)),
			markup.E("title", d.title+" · Pintle"),
			markup.E("link", markup.A("rel", "icon"), markup.A("href", asset("icon.svg"))),
			markup.E("link", markup.A("rel", "stylesheet"), markup.A("href", asset("console.css"))),
			markup.E("script", markup.A("src", asset("console.js")), markup.If("defer", true)),
		),
		markup.E("body", live,
			markup.E("a", markup.Class("skip"), markup.A("href", "#main"), "Skip to the content"),
			p.header(v),
			markup.E("main", markup.ID("main"), markup.A("tabindex", "-1"), markup.E("h1", d.title), d.content),
			p.footer(),
		),
	)
}

func asset(name string) string { return "/console/assets/" + name + "?v=" + assetVersion }

// header is the navigation, and who is there.
func (p *Pages) header(v *visit) markup.Node {
	brand := markup.E("a", markup.Class("brand"), markup.A("href", "/console/"),
		markup.E("img", markup.A("src", asset("icon.svg")), markup.A("alt", ""), markup.A("width", "20"), markup.A("height", "20")), "Pintle")
	if v == nil {
		return markup.E("header", brand)
	}
	var links []markup.Node
	for _, view := range p.nav {
		here := view.path == v.r.URL.Path+"{$}" || view.path == v.r.URL.Path || view.path != "/console/{$}" && strings.HasPrefix(v.r.URL.Path, view.path+"/")
		current := markup.If("aria-current", false)
		if here {
			current = markup.A("aria-current", "page")
		}
		links = append(links, markup.E("a", markup.A("href", strings.TrimSuffix(view.path, "{$}")), current, view.nav))
	}
	return markup.E("header", brand,
		markup.E("nav", markup.A("aria-label", "Views"), links),
		markup.E("span", markup.ID("link"), markup.A("role", "status")),
		p.who(v),
	)
}

// who says who has logged in.
func (p *Pages) who(v *visit) markup.Node {
	if p.opts.Sessions.IsOpen() {
		return nil
	}
	name := v.session.Principal[strings.LastIndexAny(v.session.Principal, ":/")+1:]
	return markup.E("form", markup.Class("who"), markup.A("method", "post"), markup.A("action", "/console/logout"),
		markup.E("span", markup.A("title", v.session.Principal), name), markup.E("button", "Log out"))
}

func (p *Pages) footer() markup.Node {
	text := "Pintle " + p.opts.Version + " · " + p.opts.Region + " · account " + p.opts.Account
	if p.opts.ReadOnly {
		text += " · read-only"
	}
	return markup.E("footer", text)
}

// failure says what went wrong.
func failure(text string) markup.Node {
	return markup.E("p", markup.Class("failure"), markup.A("role", "alert"), text)
}

// failed is the failure of an error.
func failed(err error) markup.Node {
	_, text := sayOf(err)
	return failure(text)
}

// serveAsset answers with one of the console's own files.
func (p *Pages) serveAsset(w http.ResponseWriter, r *http.Request) {
	b, err := assets.ReadFile("assets/" + r.PathValue("name"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	secure(w.Header())
	w.Header().Set("Cache-Control", "public, max-age=604800")
	w.Header().Set("Content-Type", typeOf(r.PathValue("name")))
	w.Write(b) //nolint:errcheck // nobody is left to tell
}

func typeOf(name string) string {
	switch {
	case strings.HasSuffix(name, ".js"):
		return "text/javascript; charset=utf-8"
	case strings.HasSuffix(name, ".css"):
		return "text/css; charset=utf-8"
	}
	return "image/svg+xml"
}
