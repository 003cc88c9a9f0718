package plane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	awsecr "github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/ecr/registry"
	"github.com/pintle/pintle/internal/ecr/retention"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/connection"
	"github.com/pintle/pintle/internal/wire/steady"
	"github.com/pintle/pintle/internal/wire/validation"
)

// CheckMirrors checks what Options.Mirrors would be: repositories below the prefixes must be such as ECR takes.
func CheckMirrors(mirrors map[string]string) error {
	check := validation.New(ecr.API(nil).Constraints)
	for host, prefix := range mirrors {
		if host == "" || strings.Contains(host, "/") {
			return fmt.Errorf("%q is no registry's host, such as public.ecr.aws", host)
		}
		if err := check.Check(&awsecr.CreateRepositoryInput{RepositoryName: new(prefix + "/image")}); err != nil {
			return fmt.Errorf("%q isn't the beginning of repositories' names, such as public", prefix)
		}
	}
	return nil
}

// openImages opens the store of the registry's blobs.
func (p *Plane) openImages(dir string) (err error) {
	p.images, err = blobs.Open(dir, blobs.Options{Now: p.now, Room: p.writable})
	return err
}

func (p *Plane) keepImages(ctx context.Context) error {
	return retention.New(p.State, p.images, retention.Options{Now: p.now, Log: p.log}).Run(ctx)
}

// registry returns the handler of the registry's API, which knows its callers by passwords and not by signatures. g decides what they may do.
func (p *Plane) registry(g gate) http.Handler {
	images := registry.New(p.ECR, p.images, registry.Options{
		Allow: func(ctx context.Context, operation string, in any) error {
			c := call.From(ctx)
			c.Operation = operation
			if err := g.check(call.With(ctx, c), in); err != nil {
				return err
			}
			return p.admit(c.Service, operation)
		},
		Refusing: steady.EndUnread,
		Failed:   func(err error) { p.log.Error("request failed", "service", "ecr", "error", err) },
		Upstream: p.upstream,
		Peers:    p.holders,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := p.puller(r)
		if !ok {
			refusePuller(w, r)
			return
		}
		connection.Know(r.Context())
		steady.Relax(r)
		ctx := call.With(r.Context(), call.Call{
			RequestID: uuid.NewString(),
			Service:   "ecr",
			Peer:      r.RemoteAddr,
			Endpoint:  call.EndpointOf(r),
			Identity:  who,
		})
		images.ServeHTTP(steadyAnswer{w, steady.NewWriter(w, http.NewResponseController(w))}, r.WithContext(ctx))
	})
}

// puller returns who sent a request to the registry. Where signatures aren't checked, it's the account's owner; if policies are enforced all
// the same, whoever logged in must have a token that holds, and is whom it says.
func (p *Plane) puller(r *http.Request) (call.Identity, bool) {
	user, password, _ := r.BasicAuth()
	who, err := p.ECR.Bearer(password)
	known := err == nil && user == ecr.User
	if p.verifier == nil {
		if p.options.EnforceIAM && user == ecr.User {
			return who, known
		}
		return call.Identity{}, true
	}
	if r.Method == http.MethodGet && p.ECR.IsSigned(r.URL) {
		return call.Identity{}, true // it opens one layer, and nothing is asked
	}
	return who, known && who.Principal != "" // tokens from when nothing was checked are nobody's
}

// refusePuller asks for a password.
func refusePuller(w http.ResponseWriter, r *http.Request) {
	steady.EndUnread(w, r)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Docker-Distribution-Api-Version", "registry/2.0")
	h.Set("Www-Authenticate", `Basic realm="`+call.EndpointOf(r)+`/",service="ecr.amazonaws.com"`)
	w.WriteHeader(http.StatusUnauthorized)
	json.NewEncoder(w).Encode(map[string]any{ //nolint:errcheck // nobody is left to tell
		"errors": []map[string]string{{"code": "UNAUTHORIZED", "message": "Not Authorized"}},
	})
}

// steadyAnswer is an answer whose writes have a deadline each.
type steadyAnswer struct {
	http.ResponseWriter
	body *steady.Writer
}

func (s steadyAnswer) Write(b []byte) (int, error) { return s.body.Write(b) }
