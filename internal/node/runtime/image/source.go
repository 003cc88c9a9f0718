package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/plaintext"
)

// The prefixes of references to images in files.
const (
	RootfsPrefix = "rootfs:"     // rootfs:/path.tar[.gz]
	LayoutPrefix = "oci-layout:" // oci-layout:/path
)

// fetch gets an image from its registry, unless the store has the same one.
func (s *Store) fetch(ctx context.Context, ref string, auth *runtime.RegistryAuth) (*Image, error) {
	found, err := Find(ctx, ref, auth, s.stall)
	if err != nil {
		return nil, err
	}
	if stored, err := s.Get(ref); err == nil && stored.Digest == found.Digest.String() {
		return stored, nil
	}
	img, err := found.Image()
	if err != nil {
		return nil, err
	}
	return s.add(ctx, ref, found.Digest.String(), img)
}

// Parse parses the name of an image in a registry. One that names none is a runtime.ErrImageName.
func Parse(ref string) (name.Reference, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil || strings.HasPrefix(ref, "/") || !fs.ValidPath(parsed.Context().RepositoryStr()) { // the library lets "a/../b" pass
		return nil, fmt.Errorf("%s: %w", ref, runtime.ErrImageName)
	}
	return parsed, nil
}

// Find finds an image, for this platform, in its registry. It gives up on one that hangs.
func Find(ctx context.Context, ref string, auth *runtime.RegistryAuth, stall time.Duration) (*remote.Descriptor, error) {
	parsed, err := Parse(ref)
	if err != nil {
		return nil, err
	}
	credentials, err := Credentials(ctx, parsed, auth)
	if err != nil {
		return nil, err
	}
	transport := remote.DefaultTransport
	if auth != nil && auth.Via != nil {
		if parsed, err = along(parsed, auth.Via); err != nil {
			return nil, err
		}
		transport = transportOf(auth.Via)
	}
	return remote.Get(
		parsed, remote.WithContext(ctx), remote.WithPlatform(platform()), remote.WithAuth(credentials),
		remote.WithTransport(watched{plaintext.Guard{RoundTripper: transport, Allowed: auth != nil && auth.Via != nil && auth.Via.Plain}, stall}),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}), // the agent's engine tries again
	)
}

// along returns a reference to the same image where its registry is.
func along(ref name.Reference, via *runtime.Via) (name.Reference, error) {
	separator := ":"
	if _, isDigest := ref.(name.Digest); isDigest {
		separator = "@"
	}
	var options []name.Option
	if via.Plain {
		options = append(options, name.Insecure)
	}
	return name.ParseReference(via.Host+"/"+ref.Context().RepositoryStr()+separator+ref.Identifier(), options...)
}

// transportOf returns the transport to a registry that has a certificate of its own.
func transportOf(via *runtime.Via) http.RoundTripper {
	t := remote.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = via.TLS
	t.Proxy = nil // it's the control plane, which the agent calls all the time
	t.DisableKeepAlives = true
	if via.Through != nil {
		return via.Through(t)
	}
	return t
}

// Credentials returns the credentials for an image's registry. They're the task's if it has any, else those that docker login (or podman
// login) stored on this node for the agent's user, else none.
func Credentials(ctx context.Context, ref name.Reference, auth *runtime.RegistryAuth) (authn.Authenticator, error) {
	if auth != nil {
		return &authn.Basic{Username: auth.Username, Password: auth.Password}, nil
	}
	return authn.Resolve(ctx, authn.DefaultKeychain, ref.Context())
}

// FromLayout finds this platform's image in an OCI layout, and its digest in the layout's index. An image without a platform fits all.
func FromLayout(path string) (img v1.Image, digest string, err error) {
	index, err := layout.ImageIndexFromPath(path)
	if err != nil {
		return nil, "", err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, "", err
	}
	for _, m := range manifest.Manifests {
		switch {
		case m.MediaType.IsIndex():
			nested, err := index.ImageIndex(m.Digest)
			if err != nil {
				return nil, "", err
			}
			if img, err = findImage(nested); err != nil {
				return nil, "", err
			}
		case m.MediaType.IsImage() && runsHere(m.Platform):
			if img, err = index.Image(m.Digest); err != nil {
				return nil, "", err
			}
		}
		if img != nil {
			return img, m.Digest.String(), nil
		}
	}
	return nil, "", fmt.Errorf("the OCI layout %s holds no image for %s", path, platform())
}

// findImage returns this platform's image, or nil.
func findImage(index v1.ImageIndex) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range manifest.Manifests {
		if m.MediaType.IsImage() && runsHere(m.Platform) {
			return index.Image(m.Digest)
		}
	}
	return nil, nil
}

func runsHere(p *v1.Platform) bool { return p == nil || p.Satisfies(platform()) }

// readRootfs makes an image with one layer from a tarball, unless the stored one was made from the same file.
func (s *Store) readRootfs(ref, path string) (*Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	source := fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime())
	if stored, err := s.Get(ref); err == nil && stored.Source == source {
		return stored, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return nil, err
	}
	layer := layerName(hex.EncodeToString(hash.Sum(nil)))
	err = s.addLayer(layer, func(dir string) error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return untar(f, dir)
	})
	if err != nil {
		return nil, err
	}
	img := &Image{Ref: ref, Layers: []string{layer}, Source: source}
	return img, s.put(img)
}

// add unpacks an image's layers and records the image.
func (s *Store) add(ctx context.Context, ref, digest string, from v1.Image) (*Image, error) {
	config, err := from.ConfigFile()
	if err != nil {
		return nil, err
	}
	if config.OS != "" && config.OS != "linux" {
		return nil, fmt.Errorf("%s is an image for %s", ref, config.OS)
	}
	names, err := s.unpackAll(ctx, from)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New(ref + " has no layers")
	}
	img := &Image{Ref: ref, Digest: digest, Config: config.Config, Layers: names}
	return img, s.put(img)
}
