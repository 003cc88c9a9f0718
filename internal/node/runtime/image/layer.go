package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/go-archive"
	"github.com/moby/go-archive/chrootarchive"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// layerName shortens a layer's digest to 96 bits, since the names of all of an image's layers must fit into one page for mount(2).
func layerName(hex string) string { return hex[:24] }

// maxUnpacks is how many of an image's layers are fetched and unpacked at the same time, as in Docker.
const maxUnpacks = 3

// unpackAll stores an image's layers, and returns their names in order.
func (s *Store) unpackAll(ctx context.Context, img v1.Image) ([]string, error) {
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(layers))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxUnpacks)
	for i, l := range layers {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			id, err := l.DiffID()
			if err != nil {
				return err
			}
			names[i] = layerName(id.Hex)
			for {
				err := s.addLayer(names[i], func(dir string) error { return unpack(l, id, dir) })
				if !errors.Is(err, context.Canceled) || ctx.Err() != nil {
					return err
				}
			} // another caller started it and was canceled
		})
	}
	return names, g.Wait()
}

// addLayer stores a layer, unless it's there already. unpack fills a directory, which becomes the layer once it's complete and on disk.
func (s *Store) addLayer(name string, unpack func(dir string) error) error {
	_, err, _ := s.pulls.Do("layer "+name, func() (any, error) {
		if s.has(name) {
			return nil, nil
		}
		dir, err := os.MkdirTemp(s.layers(), unfinished)
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)                      // does nothing after the rename
		if err := os.Chmod(dir, 0o755); err != nil { // it becomes the container's root directory
			return nil, err
		}
		if err := unpack(dir); err != nil {
			return nil, err
		}
		if err := syncAll(dir); err != nil {
			return nil, err
		}
		return nil, os.Rename(dir, filepath.Join(s.layers(), name))
	})
	return err
}

// unpack unpacks a layer, and checks its content against the digest that the image names.
func unpack(l v1.Layer, want v1.Hash, dir string) error {
	r, err := l.Uncompressed()
	if err != nil {
		return err
	}
	defer r.Close()
	hash := sha256.New()
	in := io.TeeReader(r, hash)
	if err := untar(in, dir); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil { // padding after the last file
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != want.Hex {
		return fmt.Errorf("a layer's content has the digest %s, and should have %s", got, want.Hex)
	}
	return nil
}

// untar unpacks a tarball, compressed or not. It converts markers of deleted files to overlayfs's form. It runs with dir as its root
// directory, so no link in the tarball leads out of it.
func untar(r io.Reader, dir string) error {
	return chrootarchive.Untar(r, dir, &archive.TarOptions{WhiteoutFormat: archive.OverlayWhiteoutFormat})
}

// syncAll makes everything that was written to dir's file system durable.
func syncAll(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}
