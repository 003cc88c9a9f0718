package plane

import (
	"context"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/pintle/pintle/internal/console/costs"
	"github.com/pintle/pintle/internal/console/login"
	"github.com/pintle/pintle/internal/console/pages"
	"github.com/pintle/pintle/internal/wire/sign"
)

// mountPages mounts the console, unless it's off.
func (p *Plane) mountPages() {
	if p.options.Console == "off" {
		return
	}
	who := login.Options{Now: p.now}
	if p.verifier != nil {
		who.Lookup = p.lookup
	}
	p.pages = pages.New(pages.Options{
		Version:  p.options.Version,
		Region:   p.options.Region,
		Account:  p.options.Account,
		ReadOnly: p.options.Console == "read-only",
		Now:      p.now,
		Store:    p.State,
		Link:     p.Link,
		Services: p,
		MayList:  p.mayList,
		Prices:   p.options.Prices,
		Sessions: login.New(who),

		DataChannels: p.sessions,
		Serverless:   p.scheduler.Serverless,
	})
	p.handler.Handle("/console", p.pages)
	p.handler.Handle("/console/", p.pages)
}

// mayList refuses those who may not list a cluster's nodes and tasks. Whoever may is told what all of them hold and wait for.
func (p *Plane) mayList(ctx context.Context, cluster string) error {
	one := aws.Int32(1)
	if _, err := p.Call(ctx, &awsecs.ListContainerInstancesInput{Cluster: &cluster, MaxResults: one}); err != nil {
		return err
	}
	_, err := p.Call(ctx, &awsecs.ListTasksInput{Cluster: &cluster, MaxResults: one})
	return err
}

// costs tells what machines cost, as whoever asks may know.
func (p *Plane) costs(ctx context.Context) (costs.Report, error) {
	return costs.Of(ctx, p, p.options.Prices, p.now())
}

// home sends browsers that ask for the root on to the console. What S3's clients ask for there is a list of buckets.
func (p *Plane) home(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.pages != nil && wantsHome(r) {
			http.Redirect(w, r, "/console/", http.StatusSeeOther)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// wantsHome reports whether somebody typed this machine's address into a browser. S3's clients sign, bring no language and don't ask for HTML; a
// bucket's own host has a name before this machine's.
func wantsHome(r *http.Request) bool {
	isS3 := strings.HasPrefix(r.Host, "s3.") || strings.Contains(r.Host, ".s3.") || strings.Contains(r.Host, ".s3-")
	return r.Method == http.MethodGet && r.URL.Path == "/" && r.URL.RawQuery == "" && !isS3 && isBrowser(r.Header) &&
		strings.Contains(r.Header.Get("Accept"), "text/html") && sign.ScopeOf(r) == ""
}
