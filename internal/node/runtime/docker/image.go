package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/image"
)

// imageName returns the engine's name for an image. An image from a file gets a name that is derived from its path, and one of ECR's with a
// digest one that is derived from that.
func imageName(ref string) string {
	if !strings.HasPrefix(ref, image.RootfsPrefix) && !strings.HasPrefix(ref, image.LayoutPrefix) && !isPinnedInECR(ref) {
		return ref
	}
	sum := sha256.Sum256([]byte(ref))
	return "pintle.local/file:" + hex.EncodeToString(sum[:8])
}

var ecrHost = regexp.MustCompile(`^\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com/`)

// isPinnedInECR reports whether a reference names an image of ECR by its digest. The engine knows no digest of one that it was given.
func isPinnedInECR(ref string) bool { return strings.Contains(ref, "@") && ecrHost.MatchString(ref) }

// Pull implements runtime.Runtime. A file is looked at each time, since it may have changed.
func (r *Runtime) Pull(ctx context.Context, ref string, auth *runtime.RegistryAuth) (string, error) {
	var err error
	switch {
	case auth != nil && auth.Via != nil:
		return r.bring(ctx, ref, auth)
	case strings.HasPrefix(ref, image.RootfsPrefix):
		err = r.importRootfs(ctx, ref)
	case strings.HasPrefix(ref, image.LayoutPrefix):
		err = r.loadLayout(ctx, ref)
	default:
		err = r.pull(ctx, ref, auth)
	}
	if err != nil {
		return "", orUnavailable(err)
	}
	return r.Stored(ctx, ref)
}

// Stored implements runtime.Runtime.
func (r *Runtime) Stored(ctx context.Context, ref string) (string, error) {
	found, err := r.api.ImageInspect(ctx, imageName(ref))
	if errdefs.IsNotFound(err) {
		return "", fmt.Errorf("%s: %w", ref, runtime.ErrImageNotFound)
	}
	if err != nil {
		return "", orUnavailable(err)
	}
	return digestIn(ref, found.RepoDigests), nil
}

// digestIn returns an image's digest in the repository that a reference names, or "" if it has none there, as one that was built here.
func digestIn(ref string, digests []string) string {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "" // it's from a file
	}
	for _, d := range digests {
		if known, err := name.NewDigest(d); err == nil && known.Context().Name() == parsed.Context().Name() {
			return known.DigestStr()
		}
	}
	return ""
}

func (r *Runtime) pull(ctx context.Context, ref string, auth *runtime.RegistryAuth) error {
	parsed, err := image.Parse(ref)
	if err != nil {
		return err
	}
	credentials, err := image.Credentials(ctx, parsed, auth)
	if err != nil {
		return err
	}
	c, err := credentials.Authorization()
	if err != nil {
		return err
	}
	options := client.ImagePullOptions{}
	if *c != (authn.AuthConfig{}) {
		options.RegistryAuth, err = authconfig.Encode(registry.AuthConfig{
			Username:      c.Username,
			Password:      c.Password,
			Auth:          c.Auth,
			IdentityToken: c.IdentityToken,
			RegistryToken: c.RegistryToken,
		})
		if err != nil {
			return err
		}
	}
	if err := r.pullWatched(ctx, ref, options, image.Stall); err != nil || !isPinnedInECR(ref) {
		return err
	}
	_, err = r.api.ImageTag(ctx, client.ImageTagOptions{Source: ref, Target: imageName(ref)})
	return err
}

// bring pulls an image and gives it to the engine, which needn't know the registry's address or its certificate, and returns its digest. What
// the engine has already isn't pulled.
func (r *Runtime) bring(ctx context.Context, ref string, auth *runtime.RegistryAuth) (digest string, err error) {
	found, err := image.Find(ctx, ref, auth, image.Stall)
	if err != nil {
		return "", err
	}
	img, err := found.Image()
	if err != nil {
		return "", err
	}
	id, err := img.ConfigName()
	if err != nil {
		return "", err
	}
	if has, err := r.api.ImageInspect(ctx, imageName(ref)); err == nil && (has.ID == id.String() || has.ID == found.Digest.String()) {
		return found.Digest.String(), nil
	}
	return found.Digest.String(), orUnavailable(r.load(ctx, ref, img))
}

// ImagesSize says how many bytes all of the engine's images take.
func (r *Runtime) ImagesSize(ctx context.Context) (int64, error) {
	use, err := r.api.DiskUsage(ctx, client.DiskUsageOptions{Images: true})
	return use.Images.TotalSize, err
}

// RemoveImage removes an image's names, and the image with the last of them. One that a container has stays, whoever made that.
func (r *Runtime) RemoveImage(ctx context.Context, ref string) error {
	names := []string{imageName(ref)}
	if isPinnedInECR(ref) {
		names = append(names, ref) // which it was pulled by
	}
	for _, name := range names {
		_, err := r.api.ImageRemove(ctx, name, client.ImageRemoveOptions{PruneChildren: true})
		if errdefs.IsConflict(err) {
			return fmt.Errorf("%w: %w", runtime.ErrImageInUse, err)
		}
		if err != nil && !errdefs.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// pullWatched pulls an image, unless the engine reports no progress for a while.
func (r *Runtime) pullWatched(ctx context.Context, ref string, options client.ImagePullOptions, stall time.Duration) error {
	ctx, watchdog := image.Watch(ctx, stall)
	defer watchdog.Stop()
	p, err := r.api.ImagePull(ctx, ref, options)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	for m, err := range p.JSONMessages(ctx) {
		switch {
		case err != nil:
			return cmp.Or(context.Cause(ctx), err)
		case m.Error != nil:
			return m.Error
		}
		watchdog.Reset()
	}
	return context.Cause(ctx)
}

// tarballStamp tells whether a tarball is still the one that an image was made from.
type tarballStamp struct {
	size    int64
	changed time.Time
}

// importRootfs makes an image with one layer from a tarball, unless the engine has that image. It makes one at a time and none needlessly: version 29
// of the engine replaces an image by deleting it first, and whoever made a container of it just then would find none.
func (r *Runtime) importRootfs(ctx context.Context, ref string) error {
	f, err := os.Open(strings.TrimPrefix(ref, image.RootfsPrefix))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	is := tarballStamp{info.Size(), info.ModTime()}
	r.importing.Lock()
	defer r.importing.Unlock()
	if r.imported[ref] == is {
		if _, err := r.Stored(ctx, ref); !errors.Is(err, runtime.ErrImageNotFound) {
			return err
		}
	}
	if err := r.importTarball(ctx, ref, f); err != nil {
		return err
	}
	r.imported[ref] = is
	return nil
}

func (r *Runtime) importTarball(ctx context.Context, ref string, f io.Reader) error {
	res, err := r.api.ImageImport(ctx, client.ImageImportSource{Source: f, SourceName: "-"}, imageName(ref), client.ImageImportOptions{})
	if err != nil {
		return err
	}
	defer res.Close()
	_, err = io.Copy(io.Discard, res)
	return err
}

// loadLayout gives the engine an image from an OCI layout, as a tarball in Docker's older format, which every engine reads.
func (r *Runtime) loadLayout(ctx context.Context, ref string) error {
	img, _, err := image.FromLayout(strings.TrimPrefix(ref, image.LayoutPrefix))
	if err != nil {
		return err
	}
	return r.load(ctx, ref, img)
}

// load gives the engine an image.
func (r *Runtime) load(ctx context.Context, ref string, img v1.Image) error {
	tag, err := name.NewTag(imageName(ref))
	if err != nil {
		return err
	}
	pr, pw := io.Pipe()
	var writing sync.WaitGroup
	writing.Go(func() { pw.CloseWithError(tarball.Write(tag, img, pw)) })
	res, err := r.api.ImageLoad(ctx, pr)
	pr.Close() // ends the writer, even if not everything was read
	writing.Wait()
	if err != nil {
		return err
	}
	defer res.Close()
	_, err = io.Copy(io.Discard, res)
	return err
}
