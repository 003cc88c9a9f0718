package image

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
)

// layersFile, in a container's directory, lists the layers that the container has mounted.
const layersFile = "layers.json"

// LayersOf returns the layers of the container in a directory.
func LayersOf(dir string) (names []string, err error) {
	return names, file.ReadJSON(filepath.Join(dir, layersFile), &names)
}

// inUse is how long an image stays that was used: another agent of this machine may be about to make a container of it.
const inUse = 10 * time.Minute

// Remove removes an image, unless it was used just now, which is runtime.ErrImageInUse. Its layers go with the next Prune, if nothing else has them.
func (s *Store) Remove(ref string) error {
	info, err := os.Stat(s.path(ref))
	if err == nil && time.Since(info.ModTime()) < inUse {
		return runtime.ErrImageInUse
	}
	if err == nil {
		err = os.Remove(s.path(ref))
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Images are the stored images, by reference, with when each was used last.
func (s *Store) Images() (map[string]time.Time, error) {
	paths, err := file.Glob(filepath.Join(s.dir, "images"), "*.json")
	if err != nil {
		return nil, err
	}
	all := map[string]time.Time{}
	for _, path := range paths {
		var img Image
		info, err := os.Stat(path)
		if err := errors.Join(err, file.ReadJSON(path, &img)); err != nil {
			return nil, err
		}
		all[img.Ref] = info.ModTime().UTC()
	}
	return all, nil
}

// Prune removes the layers that neither an image nor a container has, whose layers are given. While a pull goes on it does nothing.
func (s *Store) Prune(mounted map[string]bool) error {
	stale, err := s.detach(mounted)
	for _, dir := range stale {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// detach takes what Prune removes out of the store, and returns the directories that are left to remove.
func (s *Store) detach(mounted map[string]bool) (stale []string, err error) {
	if !s.pulling.TryLock() {
		return nil, nil
	}
	defer s.pulling.Unlock()
	held, err := s.held(mounted)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.layers())
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if held[e.Name()] || strings.HasPrefix(e.Name(), unfinished) {
			continue
		}
		dir := filepath.Join(s.layers(), unfinished+e.Name()) // the next Open removes it, if we are killed
		if err := os.Rename(filepath.Join(s.layers(), e.Name()), dir); err != nil {
			return stale, err
		}
		s.sizes.Delete(e.Name())
		stale = append(stale, dir)
	}
	return stale, nil
}

// held are the layers of all stored images, and those that containers have mounted.
func (s *Store) held(mounted map[string]bool) (map[string]bool, error) {
	held := maps.Clone(mounted)
	paths, err := file.Glob(filepath.Join(s.dir, "images"), "*.json")
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		var img Image
		err := file.ReadJSON(path, &img)
		if errors.Is(err, os.ErrNotExist) { // removed meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range img.Layers {
			held[name] = true
		}
	}
	return held, nil
}

// Size is what the layers of all images take on the disk, and of containers, whose layers are given.
func (s *Store) Size(mounted map[string]bool) (total int64, err error) {
	held, err := s.held(mounted)
	if err != nil {
		return 0, err
	}
	for name := range held {
		size, err := s.layerSize(name)
		if err != nil {
			return 0, err
		}
		total += size
	}
	return total, nil
}

// layerSize measures a layer once, since it never changes.
func (s *Store) layerSize(name string) (int64, error) {
	if known, ok := s.sizes.Load(name); ok {
		return known.(int64), nil
	}
	size, err := diskUse(filepath.Join(s.layers(), name))
	if err == nil && s.has(name) { // else it's going, and may come again
		s.sizes.Store(name, size)
	}
	return size, err
}

// diskUse is what a directory's files take on the disk. One that is gone takes nothing.
func diskUse(dir string) (total int64, err error) {
	const blockSize = 512 // of st_blocks, whatever the file system's is
	seen := map[uint64]bool{}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		if stat.Nlink > 1 && !entry.IsDir() {
			if seen[stat.Ino] {
				return nil
			}
			seen[stat.Ino] = true
		}
		total += stat.Blocks * blockSize
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	return total, err
}
