// Package pages is the console that people see in a browser: pages that are written here and kept up to date by package live. It shows what the services'
// own operations answer to whoever looks, and what they do it asks those operations for, so nobody can see or do here what they couldn't with the AWS
// CLI. Rows and nodes' reports it reads only for those who may list what they are about.
//
// A view is a file with a function that returns it, and a line in views. What it shows are fragments, which are sent again when they change; what it
// does are actions, which are forms.
package pages

import (
	"context"
	"net/http"
	"time"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/login"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/ecs/nodelink"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Options are what pages need.
type Options struct {
	Version  string
	Region   string
	Account  string
	ReadOnly bool // nothing can be done, whoever it is
	Now      func() time.Time
	Store    *state.Store
	Link     Nodes
	Services call.Caller // runs operations as the identity in the context, which must be allowed to
	// MayList says whether the caller in the context may list what is in a cluster.
	MayList  func(ctx context.Context, cluster string) error
	Sessions *login.Sessions
	Prices   map[string]float64 // of instance types, an hour
	// Serverless is the ARN of the cluster whose instances take Fargate's tasks of all clusters, or "".
	Serverless string
	// DataChannels serves the web sockets of execute-command's sessions.
	DataChannels http.Handler
}

// Nodes tells what nodes have told of themselves last.
type Nodes interface {
	Telemetry(instanceArn string) (nodelink.Telemetry, bool)
}

// Pages are the console's pages.
type Pages struct {
	opts   Options
	hub    *live.Hub
	mux    *http.ServeMux
	nav    []view
	does   map[string]action
	shells shells
	ended  context.Context
	end    context.CancelFunc
}

// view is a page.
type view struct {
	path  string // as http.ServeMux has it
	nav   string // its name in the navigation, or "" if it isn't there
	title func(v *visit) string
	head  func(v *visit) (markup.Node, error)     // what doesn't change while somebody looks, such as filters; may be nil
	body  func(v *visit) ([]live.Fragment, error) // what does
	reads func(v *state.View)                     // watches the tables that the body shows
	every time.Duration                           // how often to look at what isn't in tables; 0 for seldom
	// arm is instead of reads for what isn't in tables: it returns what waits until the page may have changed. Its page is rendered at the pace of keys.
	arm  func(v *visit) func(context.Context) error
	does map[string]action                            // by names that no other view has
	gets map[string]func(http.ResponseWriter, *visit) // what isn't a page, such as files, by paths
}

// fast is the pace of pages that answer to keys.
const fast = 30 * time.Millisecond

// action does what a form asks for. It returns the address of the page to see next.
type action func(v *visit) (next string, err error)

// views lists all views. The navigation has their order.
func (p *Pages) views() []view {
	return []view{
		p.clusterView(),
		p.nodeView(),
		p.tasksView(),
		p.taskView(),
		p.servicesView(),
		p.serviceView(),
		p.scalingView(),
		p.serviceScalingView(),
		p.replayView("/console/scaling/services/{cluster}/{service}/replay"), p.replayView("/console/scaling/groups/{group}/replay"),
		p.groupView(),
		p.moneyView(),
		p.logsView(),
		p.logView(),
		p.shellView(),
		p.queuesView(),
		p.queueView(),
		p.bucketsView(),
		p.bucketView(),
		p.stacksView(),
		p.stackView(),
	}
}

// New returns the pages.
func New(o Options) *Pages {
	p := &Pages{opts: o, hub: live.New(), mux: http.NewServeMux(), does: map[string]action{}}
	p.ended, p.end = context.WithCancel(context.Background())
	for _, v := range p.views() {
		p.mux.Handle("GET "+v.path, p.forVisitors(func(w http.ResponseWriter, q *visit) { p.serve(w, q, v) }))
		if v.nav != "" {
			p.nav = append(p.nav, v)
		}
		for name, do := range v.does {
			p.does[name] = do
		}
		for path, get := range v.gets {
			p.mux.Handle("GET "+path, p.forVisitors(get))
		}
	}
	p.mux.Handle("POST /console/do/{action}", p.forVisitors(p.serveAction))
	p.mux.HandleFunc("GET /console/assets/{name}", p.serveAsset)
	p.mux.HandleFunc("GET /console/login", p.serveLogin)
	p.mux.HandleFunc("POST /console/login", p.serveBegin)
	p.mux.Handle("POST /console/keys/{shell}", p.forShell(serveKeys))
	p.mux.Handle("POST /console/size/{shell}", p.forShell(serveSize))
	p.mux.Handle("POST /console/upload/{bucket}", p.forVisitors(p.serveUpload))
	p.mux.Handle("POST /console/logout", p.forVisitors(p.serveEnd))
	p.mux.Handle("/console", http.RedirectHandler("/console/", http.StatusSeeOther))
	return p
}

// Close ends all connections of pages that are kept up to date. Without pages it does nothing.
func (p *Pages) Close() {
	if p != nil {
		p.end()
	}
}
