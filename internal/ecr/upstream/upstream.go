// Package upstream brings images of other registries into repositories that a pull-through cache rule is for. Whoever pulls an image needn't
// wait for the whole of it: manifests are answered at once, and layers are passed on while they come. However many pull, each layer comes
// once. It decides nothing about callers: package registry has asked whether they may.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/plaintext"
	"github.com/pintle/pintle/internal/state"
)

// guarded is how other registries are spoken to.
var guarded = plaintext.Guard{RoundTripper: remote.DefaultTransport}

const (
	// stall is how long a registry may send nothing.
	stall = time.Minute
	// maxImages is how many images may be on their way, and maxDownloads how many layers of one.
	maxImages    = 64
	maxDownloads = 3
)

// The errors of images that don't come.
var (
	ErrNotThere    = errors.New("the upstream registry has no such image")
	ErrUnreachable = errors.New("the upstream registry can't be asked")
	ErrBusy        = errors.New("too many images are on their way")
)

// Cache brings images.
type Cache struct {
	ecr    *ecr.Service
	blobs  *blobs.Store
	log    *slog.Logger
	asking singleflight.Group // by repository and reference

	mu      sync.Mutex
	ctx     context.Context      // Run's; nil before and after
	images  int                  // on their way
	coming  map[string]*download // layers, by repository and digest
	running sync.WaitGroup
}

// New returns a cache that stores what it brings in a service's repositories.
func New(s *ecr.Service, b *blobs.Store, log *slog.Logger) *Cache {
	return &Cache{ecr: s, blobs: b, log: log, coming: map[string]*download{}}
}

// Run lets images come until ctx ends.
func (c *Cache) Run(ctx context.Context) error {
	c.mu.Lock()
	c.ctx = ctx
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock()
	c.ctx = nil
	c.mu.Unlock()
	c.running.Wait()
	return ctx.Err()
}

// Try asks a rule's registry whether it takes the rule's password.
func (c *Cache) Try(ctx context.Context, rule *state.PullThroughRule) error {
	ctx, cancel := context.WithTimeout(ctx, stall/4)
	defer cancel()
	auth, err := c.credentials(ctx, rule)
	if err != nil {
		return err
	}
	registry, err := name.NewRegistry(rule.URL)
	if err != nil {
		return err
	}
	t, err := transport.NewWithContext(ctx, registry, auth, guarded, []string{"registry:catalog:*"})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, registry.Scheme()+"://"+registry.Name()+"/v2/", nil)
	if err != nil {
		return err
	}
	answer, err := t.RoundTrip(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read only
	return transport.CheckError(answer, http.StatusOK)
}

func (c *Cache) credentials(ctx context.Context, rule *state.PullThroughRule) (authn.Authenticator, error) {
	l, err := c.ecr.Login(ctx, rule.Credential)
	if err != nil || l == nil {
		return authn.Anonymous, err
	}
	return &authn.Basic{Username: l.Username, Password: l.AccessToken}, nil
}

// Manifest returns an image as the other registry has it now, and its manifest. If its layers aren't here they begin to come. admit is called
// before anything is stored.
func (c *Cache) Manifest(
	ctx context.Context, rule *state.PullThroughRule, repository, reference string, admit func() error,
) (*state.Image, []byte, error) {
	type found struct {
		image *state.Image
		text  []byte
	}
	answer := c.asking.DoChan(state.InRepository(repository, reference), func() (any, error) {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), stall) // others may wait for it, too
		defer cancel()
		i, text, err := c.ask(asking, rule, repository, reference, admit)
		return found{i, text}, err
	})
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case r := <-answer:
		f := r.Val.(found)
		return f.image, f.text, r.Err
	}
}

func (c *Cache) ask(
	ctx context.Context, rule *state.PullThroughRule, repository, reference string, admit func() error,
) (*state.Image, []byte, error) {
	source, err := name.NewRepository(rule.URL + "/" + rule.Upstream(repository))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNotThere, err)
	}
	auth, err := c.credentials(ctx, rule)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	p := ecr.Pushed{Repository: repository, IsCached: true}
	var ref name.Reference = source.Digest(reference)
	if !strings.Contains(reference, ":") {
		ref = source.Tag(reference)
		p.Tag = reference
	}
	d, err := remote.Get(ref, remote.WithContext(ctx), remote.WithAuth(auth), remote.WithTransport(guarded))
	if refused := new(transport.Error); errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound {
		return nil, nil, ErrNotThere
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	p.Manifest = d.Manifest
	p.MediaType = string(d.MediaType)
	i, err := ecr.Parse(p.Manifest, p.MediaType)
	if err != nil {
		return nil, nil, err
	}
	if err := admit(); err != nil {
		return nil, nil, err
	}
	if !i.IsList() {
		missing, err := c.missing(p, i)
		if err != nil {
			return nil, nil, err
		}
		if len(missing) > 0 {
			return i, p.Manifest, c.begin(p, &origin{source, auth}, missing)
		}
	}
	i, _, err = c.ecr.Push(ctx, p)
	return i, p.Manifest, err
}

// missing lists the blobs of an image that its repository doesn't have.
func (c *Cache) missing(p ecr.Pushed, i *state.Image) (all []v1.Descriptor, err error) {
	m, err := v1.ParseManifest(strings.NewReader(string(p.Manifest)))
	if err != nil {
		return nil, err
	}
	v := c.ecr.View()
	wanted := map[string]bool{}
	for _, digest := range i.Layers {
		wanted[digest] = v.ImageLayers.Get(state.InRepository(p.Repository, digest)) == nil
	}
	for _, d := range append([]v1.Descriptor{m.Config}, m.Layers...) {
		if digest := d.Digest.String(); wanted[digest] {
			delete(wanted, digest)
			all = append(all, d)
		}
	}
	return all, nil
}

// begin has the blobs of an image come, and puts the image once they have.
func (c *Cache) begin(p ecr.Pushed, from *origin, missing []v1.Descriptor) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil || c.images >= maxImages {
		return ErrBusy
	}
	downloads, err := c.downloadsLocked(p.Repository, missing)
	if err != nil {
		return err
	}
	c.images++
	ctx := c.ctx
	c.running.Go(func() {
		err := c.bring(ctx, p, from, downloads)
		if err != nil && ctx.Err() == nil {
			c.log.Warn("cannot bring an image from its registry", "repository", p.Repository, "image", p.Tag, "from", from.repository, "error", err)
		}
		c.mu.Lock()
		c.images--
		c.mu.Unlock()
	})
	return nil
}

func (c *Cache) bring(ctx context.Context, p ecr.Pushed, from *origin, downloads []*download) error {
	g, fetching := errgroup.WithContext(ctx)
	g.SetLimit(maxDownloads)
	for _, d := range downloads {
		g.Go(func() error { return c.fetch(fetching, from, d) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	_, _, err := c.ecr.Push(ctx, p)
	return err
}
