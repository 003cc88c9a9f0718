// Package image stores container images on this machine. It pulls them from registries, OCI layouts and tarballs of root file systems,
// unpacks each layer once, and stacks an image's layers for a container with overlayfs. Only the oci runtime uses it; Docker stores its own
// images.
package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/singleflight"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Image is a stored image.
type Image struct {
	Ref    string
	Digest string    // of its manifest or index; empty for a tarball
	Config v1.Config // what its containers run by default
	Layers []string  // the names of its layers, the lowest first
	Source string    `json:",omitempty"` // describes the tarball that it was read from, so that we notice a change
}

// Store is the image store of one agent process, in a directory of its own:
//
//	images/HASH.json   an Image, named after a hash of its reference
//	layers/NAME/       an unpacked layer, which appears whole or not at all
type Store struct {
	dir   string
	stall time.Duration      // how long a registry may send nothing
	pulls singleflight.Group // by reference, and by layer
	// pulling is held for reading while layers are unpacked that no image has yet.
	pulling sync.RWMutex
	sizes   sync.Map // of layers in bytes, by name
}

// unfinished is the prefix of directories where layers are being unpacked.
const unfinished = file.Unfinished

// Open opens the store in a directory, and removes what interrupted pulls left there.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, stall: Stall}
	for _, d := range []string{s.layers(), filepath.Join(dir, "images")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	return s, file.Clean(s.layers())
}

func (s *Store) layers() string { return filepath.Join(s.dir, "layers") }

func (s *Store) path(ref string) string {
	sum := sha256.Sum256([]byte(ref))
	return filepath.Join(s.dir, "images", hex.EncodeToString(sum[:16])+".json")
}

// Get returns a stored image, or runtime.ErrImageNotFound.
func (s *Store) Get(ref string) (*Image, error) {
	img := new(Image)
	err := file.ReadJSON(s.path(ref), img)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", ref, runtime.ErrImageNotFound)
	}
	if err != nil {
		return nil, err
	}
	for _, layer := range img.Layers {
		if !s.has(layer) {
			return nil, fmt.Errorf("%s: layer %s is gone: %w", ref, layer, runtime.ErrImageNotFound)
		}
	}
	return img, nil
}

func (s *Store) has(layer string) bool {
	_, err := os.Stat(filepath.Join(s.layers(), layer))
	return err == nil
}

// put records an image. Its layers must be in the store.
func (s *Store) put(img *Image) error { return file.WriteJSON(s.path(img.Ref), img, false) }

// Pull stores an image as it is at its source now. Concurrent pulls of the same image share the work.
func (s *Store) Pull(ctx context.Context, ref string, auth *runtime.RegistryAuth) (*Image, error) {
	done := s.pulls.DoChan(ref, func() (any, error) { return s.pull(ctx, ref, auth) })
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-done:
		if r.Err == nil {
			return r.Val.(*Image), nil
		}
		if errors.Is(r.Err, context.Canceled) && ctx.Err() == nil { // another caller started the pull and was canceled
			return s.Pull(ctx, ref, auth)
		}
		return nil, r.Err
	}
}

// Stored returns a stored image, and notes that it's used, or returns runtime.ErrImageNotFound. An image that a reference names by its digest
// may have been stored under its tag.
func (s *Store) Stored(ref string) (*Image, error) {
	img, err := s.Get(ref)
	if err == nil {
		return img, s.touch(ref)
	}
	tag, digest, ok := strings.Cut(ref, "@")
	if !ok {
		return nil, err
	}
	tagged, tagErr := s.Get(tag)
	if tagErr != nil || tagged.Digest != digest {
		return nil, err
	}
	tagged.Ref = ref
	return tagged, s.put(tagged)
}

// touch notes that an image is used now.
func (s *Store) touch(ref string) error {
	now := time.Now()
	return os.Chtimes(s.path(ref), now, now)
}

// pull stores an image, and notes when.
func (s *Store) pull(ctx context.Context, ref string, auth *runtime.RegistryAuth) (*Image, error) {
	s.pulling.RLock()
	defer s.pulling.RUnlock()
	img, err := s.get(ctx, ref, auth)
	if err != nil {
		return nil, err
	}
	return img, s.touch(ref)
}

func (s *Store) get(ctx context.Context, ref string, auth *runtime.RegistryAuth) (*Image, error) {
	if path, ok := strings.CutPrefix(ref, RootfsPrefix); ok {
		return s.readRootfs(ref, path)
	}
	if path, ok := strings.CutPrefix(ref, LayoutPrefix); ok {
		img, digest, err := FromLayout(path)
		if err != nil {
			return nil, err
		}
		return s.add(ctx, ref, digest, img)
	}
	return s.fetch(ctx, ref, auth)
}

// platform returns the platform whose images run here.
func platform() v1.Platform { return v1.Platform{OS: "linux", Architecture: goruntime.GOARCH} }
