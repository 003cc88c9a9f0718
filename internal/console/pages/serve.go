package pages

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/state"
)

const (
	// seldom is how often a page is rendered of which nothing seems to change.
	seldom = 20 * time.Second
	// often is how often pages look at what no table tells of, such as queues and objects: what has changed shows within a second.
	often = 800 * time.Millisecond
	// beat is how often a connection is written to, which shows whether the browser is still there, and the session checked.
	beat = 10 * time.Second
	// writeLimit is how long a browser may take to read.
	writeLimit = 20 * time.Second
	// maxForm is the most bytes of a form without files.
	maxForm = 64 << 10
)

// ServeHTTP implements http.Handler.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// source returns where a view's page comes from.
func (p *Pages) source(v *visit, of view) live.Source {
	quiet := *v
	quiet.ctx = context.WithoutCancel(v.ctx) // the page is for whoever looks at it then
	every := of.every
	if every == 0 {
		every = seldom
	}
	pace := time.Duration(0)
	if of.arm != nil {
		pace = fast
	}
	return live.Source{
		Key:   v.key(),
		Of:    v.session.Holder(),
		Pace:  pace,
		Every: every,
		Render: func(context.Context) (live.Fragment, error) {
			parts, err := of.body(&quiet)
			return live.Fragment{ID: "live", HTML: markup.Start("div", markup.ID("live")), Children: parts, End: "</div>"}, err
		},
		Arm: func() func(context.Context) error { return p.arm(&quiet, of) },
	}
}

// arm watches the tables of a view.
func (p *Pages) arm(v *visit, of view) func(context.Context) error {
	if of.arm != nil {
		return of.arm(v)
	}
	if of.reads == nil {
		return func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	}
	watched := p.opts.Store.Watch()
	of.reads(watched)
	return watched.Changed
}

// serve answers with a page, or with what changes in it.
func (p *Pages) serve(w http.ResponseWriter, v *visit, of view) {
	if v.r.URL.Query().Has("live") {
		p.stream(w, v, of)
		return
	}
	page, err := p.page(v, of)
	if err != nil {
		status, text := sayOf(err)
		p.show(w, v, status, document{title: of.title(v), content: failure(text)})
		return
	}
	p.show(w, v, http.StatusOK, page)
}

// page renders a view.
func (p *Pages) page(v *visit, of view) (d document, err error) {
	d = document{title: of.title(v)}
	var head markup.Node
	if of.head != nil {
		if head, err = of.head(v); err != nil {
			return d, err
		}
	}
	body, version, err := p.hub.Render(v.ctx, p.source(v, of))
	if err != nil {
		return d, err
	}
	d.version = version
	d.content = markup.Group{head, markup.Raw(body.String())}
	return d, nil
}

// stream sends a page's changes as server-sent events.
func (p *Pages) stream(w http.ResponseWriter, v *visit, of view) {
	var beating sync.WaitGroup
	defer beating.Wait() // nothing is written to an answer that is over: its buffer is another's then
	ctx, cancel := context.WithCancel(v.ctx)
	defer cancel()
	defer context.AfterFunc(p.ended, cancel)()
	seen := v.query("live")
	if last := v.r.Header.Get("Last-Event-ID"); last != "" {
		seen = last
	}
	out := newEvents(w)
	beating.Go(func() { out.beat(ctx, cancel, func() bool { return p.opts.Sessions.Lasts(ctx, v.session) }) })
	err := p.hub.Watch(ctx, p.source(v, of), seen, func(b live.Batch) error {
		return out.send("change", b.Version, b.JSON())
	})
	switch {
	case errors.Is(err, live.ErrBehind):
		out.send("reload", "", []byte("{}")) //nolint:errcheck // it comes back either way
	case errors.Is(err, live.ErrFull):
		out.send("full", "", []byte("{}")) //nolint:errcheck // as above
	}
}

// serveAction does what a form asks for, and shows what came of it.
func (p *Pages) serveAction(w http.ResponseWriter, v *visit) {
	do, ok := p.does[v.path("action")]
	if !ok {
		p.refuse(w, http.StatusNotFound, "There is no such action.")
		return
	}
	v.r.Body = http.MaxBytesReader(w, v.r.Body, maxForm)
	if !v.session.Knows(v.form("token")) {
		p.refuse(w, http.StatusForbidden, "The form didn't come from one of the console's pages, or is of a session that is over. Load the page again.")
		return
	}
	if p.opts.ReadOnly {
		p.refuse(w, http.StatusForbidden, "The console is read-only: pintle was started with --console read-only.")
		return
	}
	next, err := do(v)
	if err != nil {
		status, text := sayOf(err)
		p.show(w, v, status, document{title: "Not done", content: failure(text)})
		return
	}
	http.Redirect(w, v.r, next, http.StatusSeeOther)
}

// refuse answers with a text.
func (p *Pages) refuse(w http.ResponseWriter, status int, text string) { http.Error(w, text, status) }

// watchAll watches some tables.
func watchAll(tables ...interface{ Watch() }) {
	for _, t := range tables {
		t.Watch()
	}
}

// readsTasks watches what tasks and nodes are made of.
func readsTasks(v *state.View) { watchAll(v.Clusters, v.ContainerInstances, v.Tasks, v.Services) }
