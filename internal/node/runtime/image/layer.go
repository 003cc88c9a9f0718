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

// layerName shortens a layer's digest: the names of all of an image's layers must fit in one page for
// mount(2). It still takes 96 bits.
func layerName(hex string) string { return hex[:24] }

// unpackAtOnce is how many layers are fetched and unpacked at the same time, as Docker does.
const unpackAtOnce = 3

// unpackAll makes an image's layers present, and returns their names in order.
func (s *Store) unpackAll(ctx context.Context, img v1.Image) ([]string, error) {
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(layers))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(unpackAtOnce)
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
				err := s.once(names[i], func(dir string) error { return unpack(l, id, dir) })
				if !errors.Is(err, context.Canceled) || ctx.Err() != nil {
					return err
				}
			} // it was another's, who gave up
		})
	}
	return names, g.Wait()
}

// once makes a layer present: unpack fills a directory, which becomes the layer once it is whole and on
// disk.
func (s *Store) once(name string, unpack func(dir string) error) error {
	_, err, _ := s.pulls.Do("layer "+name, func() (any, error) {
		if s.has(name) {
			return nil, nil
		}
		dir, err := os.MkdirTemp(s.layers(), unfinished)
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)                      // gone already when all went well
		if err := os.Chmod(dir, 0o755); err != nil { // it is the container's root directory
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

// unpack unpacks a layer and checks that it is the one that its image names.
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
	if _, err := io.Copy(io.Discard, in); err != nil { // padding behind the last file
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != want.Hex {
		return fmt.Errorf("a layer's content has the digest %s, and should have %s", got, want.Hex)
	}
	return nil
}

// untar unpacks a tarball, compressed or not, with what it marks as deleted in overlayfs's own way. It
// does so in a root directory changed to dir: no link in it leads out.
func untar(r io.Reader, dir string) error {
	return chrootarchive.Untar(r, dir, &archive.TarOptions{WhiteoutFormat: archive.OverlayWhiteoutFormat})
}

// syncAll makes all that was written to dir's file system durable.
func syncAll(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}
