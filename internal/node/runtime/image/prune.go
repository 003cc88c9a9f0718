package image

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/file"
)

// layersFile, in a container's directory, lists the layers that the container has mounted.
const layersFile = "layers.json"

// LayersOf returns the layers of the container in a directory.
func LayersOf(dir string) (names []string, err error) {
	return names, file.ReadJSON(filepath.Join(dir, layersFile), &names)
}

// Prune removes the images that no container has and that were not pulled for a while, and the layers that nothing has then. images and
// layers are what containers have. While a pull goes on it does nothing.
func (s *Store) Prune(images, layers map[string]bool, unused time.Duration) error {
	stale, err := s.detach(images, layers, unused)
	for _, dir := range stale {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// detach takes what Prune removes out of the store, and returns the directories that are left to remove.
func (s *Store) detach(images, layers map[string]bool, unused time.Duration) (stale []string, err error) {
	if !s.pulling.TryLock() {
		return nil, nil
	}
	defer s.pulling.Unlock()
	keep := map[string]bool{}
	paths, err := file.Glob(filepath.Join(s.dir, "images"), "*.json")
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		var img Image
		info, err := os.Stat(path)
		if err := errors.Join(err, file.ReadJSON(path, &img)); err != nil {
			return nil, err
		}
		if !images[img.Ref] && time.Since(info.ModTime()) > unused {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
			continue
		}
		for _, name := range img.Layers {
			keep[name] = true
		}
	}
	entries, err := os.ReadDir(s.layers())
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if keep[e.Name()] || layers[e.Name()] || strings.HasPrefix(e.Name(), unfinished) {
			continue
		}
		dir := filepath.Join(s.layers(), unfinished+e.Name()) // the next Open removes it, if we are killed
		if err := os.Rename(filepath.Join(s.layers(), e.Name()), dir); err != nil {
			return stale, err
		}
		stale = append(stale, dir)
	}
	return stale, nil
}
