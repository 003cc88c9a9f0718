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
	// maxImages is how many images may be on their way, and maxDownloads how many layers of one: so many that whoever has an image's first
	// layers needn't wait for them.
	maxImages    = 64
	maxDownloads = 16
)

// A tag that is here, and is to be looked up anew, waits for its registry only so long. If that doesn't answer it isn't asked for a while, since
// many nodes may pull such tags.
const (
	hurry   = 3 * time.Second
	respite = time.Minute
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
	images  map[string]image     // on their way, by repository and reference
	coming  map[string]*download // layers, by repository and digest
	silent  map[string]time.Time // when a registry failed to answer, by a rule's URL
	running sync.WaitGroup
}

// image is an image on its way.
type image struct {
	*state.Image

	manifest []byte
}

// New returns a cache that stores what it brings in a service's repositories.
func New(s *ecr.Service, b *blobs.Store, log *slog.Logger) *Cache {
	return &Cache{ecr: s, blobs: b, log: log, images: map[string]image{}, coming: map[string]*download{}, silent: map[string]time.Time{}}
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
// before anything is stored, for all who ask for the image at the moment.
func (c *Cache) Manifest(
	ctx context.Context, rule *state.PullThroughRule, repository, reference string, admit func(context.Context) error,
) (*state.Image, []byte, error) {
	key := state.InRepository(repository, reference)
	c.mu.Lock()
	i, isComing := c.images[key]
	c.mu.Unlock()
	if isComing {
		return i.Image, i.manifest, nil
	}
	answer := c.asking.DoChan(key, func() (any, error) {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), stall) // others may wait for it, too
		defer cancel()
		return c.ask(asking, rule, repository, reference, admit)
	})
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case r := <-answer:
		i := r.Val.(image)
		return i.Image, i.manifest, r.Err
	}
}

// Refresh is Manifest for a tag that is here already, in an older version perhaps: it fails soon if the registry doesn't answer, and at once if
// that was so lately. An answer that comes later counts for the next one who asks.
func (c *Cache) Refresh(
	ctx context.Context, rule *state.PullThroughRule, repository, tag string, admit func(context.Context) error,
) (*state.Image, []byte, error) {
	if c.isSilent(rule.URL) {
		return nil, nil, fmt.Errorf("%w: it didn't answer less than %v ago", ErrUnreachable, respite)
	}
	hurried, cancel := context.WithTimeoutCause(ctx, hurry, fmt.Errorf("%w: it didn't answer within %v", ErrUnreachable, hurry))
	defer cancel()
	i, manifest, err := c.Manifest(hurried, rule, repository, tag, admit)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if hurried.Err() != nil {
		err = context.Cause(hurried)
	}
	if errors.Is(err, ErrUnreachable) {
		c.mu.Lock()
		c.silent[rule.URL] = time.Now()
		c.mu.Unlock()
	}
	return i, manifest, err
}

func (c *Cache) isSilent(url string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.silent[url]) < respite
}

func (c *Cache) ask(
	ctx context.Context, rule *state.PullThroughRule, repository, reference string, admit func(context.Context) error,
) (image, error) {
	source, err := name.NewRepository(rule.URL + "/" + rule.Upstream(repository))
	if err != nil {
		return image{}, fmt.Errorf("%w: %w", ErrNotThere, err)
	}
	auth, err := c.credentials(ctx, rule)
	if err != nil {
		return image{}, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	p := ecr.Pushed{Repository: repository, IsCached: true}
	var ref name.Reference = source.Digest(reference)
	if !strings.Contains(reference, ":") {
		ref = source.Tag(reference)
		p.Tag = reference
	}
	d, err := remote.Get(ref, remote.WithContext(ctx), remote.WithAuth(auth), remote.WithTransport(guarded))
	if refused := new(transport.Error); errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound {
		return image{}, ErrNotThere
	}
	if err != nil {
		return image{}, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if len(d.Manifest) > ecr.MaxManifest {
		return image{}, fmt.Errorf("%w: its manifest has more than %d bytes", ErrNotThere, ecr.MaxManifest)
	}
	p.Manifest = d.Manifest
	p.MediaType = string(d.MediaType)
	i, err := ecr.Parse(p.Manifest, p.MediaType)
	if err != nil {
		return image{}, err
	}
	if err := admit(ctx); err != nil {
		return image{}, err
	}
	if !i.IsList() {
		missing, err := c.missing(p, i)
		if err != nil {
			return image{}, err
		}
		if len(missing) > 0 {
			coming := image{i, p.Manifest}
			return coming, c.begin(reference, coming, p, &origin{source, auth}, missing)
		}
	}
	i, _, err = c.ecr.Push(ctx, p)
	return image{i, p.Manifest}, err
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
func (c *Cache) begin(reference string, i image, p ecr.Pushed, from *origin, missing []v1.Descriptor) error {
	prepared, err := c.prepare(p.Repository, missing) // without mu, since the disk may be slow
	if err != nil {
		return err
	}
	spare, err := c.start(reference, i, p, from, prepared)
	if err := c.drop(spare); err != nil {
		c.log.Warn("cannot cancel an upload", "repository", p.Repository, "error", err)
	}
	return err
}

// start starts to bring an image, and returns the downloads that it doesn't need.
func (c *Cache) start(reference string, i image, p ecr.Pushed, from *origin, prepared []*download) (spare []*download, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil || len(c.images) >= maxImages {
		return prepared, ErrBusy
	}
	downloads, spare := c.joinLocked(prepared)
	key := state.InRepository(p.Repository, reference)
	c.images[key] = i
	ctx := c.ctx
	c.running.Go(func() {
		err := c.bring(ctx, p, from, downloads)
		if err != nil && ctx.Err() == nil {
			c.log.Warn("cannot bring an image from its registry", "repository", p.Repository, "image", reference, "from", from.repository, "error", err)
		}
		c.mu.Lock()
		delete(c.images, key)
		c.mu.Unlock()
	})
	return spare, nil
}

// bring fetches an image's layers and puts the image. A layer that fails leaves the others alone, for which other images may wait.
func (c *Cache) bring(ctx context.Context, p ecr.Pushed, from *origin, downloads []*download) error {
	var g errgroup.Group
	g.SetLimit(maxDownloads)
	for _, d := range downloads {
		g.Go(func() error { return c.fetch(ctx, from, d) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	_, _, err := c.ecr.Push(ctx, p)
	return err
}
