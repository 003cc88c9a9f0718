package metrics

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/wal"
)

// Check lists the damage in the directory of a store that isn't open. With repair, it rebuilds the store from what is whole and
// keeps the damaged files beside it.
func Check(dir string, repair bool) ([]file.Damage, error) {
	c := checker{dir: dir, repair: repair}
	for _, log := range []struct{ dir, kind string }{{logDir, logKind}, {namesDir, namesKind}} {
		found, err := wal.Check(filepath.Join(dir, log.dir), log.kind, repair)
		c.found = append(c.found, found...)
		if err != nil {
			return c.found, err
		}
	}
	if err := c.checkManifest(); err != nil {
		return c.found, err
	}
	if err := c.checkBlocks(); err != nil {
		return c.found, err
	}
	if !repair || !c.changed {
		return c.found, nil
	}
	return c.found, c.writeManifest()
}

// checker checks everything in a store but its logs.
type checker struct {
	dir      string
	repair   bool
	found    []file.Damage
	manifest manifest
	lost     bool // the manifest is damaged or missing
	changed  bool // the manifest must be written
}

func (c *checker) writeManifest() error {
	path := filepath.Join(c.dir, manifestFile)
	if c.lost {
		if err := file.Quarantine(path); err != nil {
			return err
		}
	}
	if err := file.WriteSealed(path, c.manifest, true); err != nil {
		return err
	}
	return file.SyncDir(c.dir)
}

func (c *checker) note(d *file.Damage, repair string) {
	found := *d
	found.Repair = repair
	c.found = append(c.found, found)
}

func (c *checker) checkManifest() error {
	path := filepath.Join(c.dir, manifestFile)
	used, err := readManifest(c.dir, &c.manifest)
	damage := new(file.Damage)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &damage):
	case errors.Is(err, os.ErrNotExist) && used:
		damage = &file.Damage{Path: path, Offset: -1, What: "is missing"}
	case errors.Is(err, os.ErrNotExist):
		return nil
	default:
		return err
	}
	c.note(damage, "rebuilds it from the existing blocks")
	c.lost = true
	c.changed = true
	return c.guessManifest()
}

// guessManifest rebuilds the manifest from the blocks' footers. A block that was merged into another doesn't count.
func (c *checker) guessManifest() error {
	c.manifest = manifest{Log: 1}
	paths, err := file.Glob(c.dir, "*.block")
	if err != nil {
		return err
	}
	merged := map[string]bool{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, ok := parseFooter(b)
		if !ok || info.File != filepath.Base(path) {
			c.note(
				&file.Damage{Path: path, Offset: -1, What: "only the manifest describes it"},
				"keeps it as "+damagedName(path)+"; its points are lost",
			)
			if err := c.setAside(path); err != nil {
				return err
			}
			continue
		}
		c.manifest.Blocks = append(c.manifest.Blocks, info)
		c.manifest.Log = max(c.manifest.Log, info.Log)
		for _, old := range info.Of {
			merged[old] = true
		}
	}
	c.manifest.Blocks = slices.DeleteFunc(c.manifest.Blocks, func(b blockInfo) bool { return merged[b.File] })
	return nil
}

func damagedName(path string) string { return filepath.Base(path) + ".damaged" }

// setAside moves a damaged file away and keeps it beside its old place.
func (c *checker) setAside(path string) error {
	if !c.repair {
		return nil
	}
	if err := file.Quarantine(path); err != nil {
		return err
	}
	return os.Remove(path)
}

func (c *checker) checkBlocks() error {
	var left []blockInfo
	for _, info := range c.manifest.Blocks {
		whole, err := c.checkBlock(info)
		if err != nil {
			return err
		}
		if whole != nil {
			left = append(left, *whole)
		}
	}
	c.manifest.Blocks = left
	return nil
}

// checkBlock returns a block's info, as of after its repair, or nil if nothing is left of it.
func (c *checker) checkBlock(info blockInfo) (*blockInfo, error) {
	path := filepath.Join(c.dir, info.File)
	var damage *file.Damage
	b, _, err := openBlock(c.dir, info)
	if err == nil {
		err = errors.Join(b.file.Close())
	} else if !errors.As(err, &damage) {
		return nil, err
	}
	if err != nil && damage == nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		c.changed = true
		c.note(damage, "goes on without it; its points are lost")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if own, ok := parseFooter(content); ok && own.File == info.File {
		info = own // left by a repair that was interrupted
	}
	good, bad := info.splitEntries(content)
	if damage == nil && len(bad) == 0 {
		return &info, nil
	}
	if damage == nil {
		damage = &file.Damage{
			Path:   path,
			Offset: bad[0].offset,
			What:   fmt.Sprintf("the points of series %d fail their checksum", bad[0].id),
		}
	}
	c.changed = true
	c.note(damage, fmt.Sprintf("keeps it as %s, and %d series of %d", damagedName(path), len(good), info.Series))
	if !c.repair {
		return &info, nil
	}
	return c.rewrite(info, content, good)
}

// splitEntries separates the entries that match their bins from those that don't.
func (i *blockInfo) splitEntries(content []byte) (good, bad []entry) {
	for n := range i.Series {
		at := i.Index + int64(n)*indexEntry
		if at < 0 || at > math.MaxInt64-indexEntry || at+indexEntry > int64(len(content)) {
			break
		}
		e := parseEntry(content[at:])
		end := e.offset + int64(e.length)
		if e.offset < 0 || end < e.offset || end > int64(len(content)) || !e.matches(content[e.offset:end]) {
			bad = append(bad, e)
			continue
		}
		good = append(good, e)
	}
	return good, bad
}

// rewrite writes a block with only the good entries.
func (c *checker) rewrite(info blockInfo, content []byte, good []entry) (*blockInfo, error) {
	path := filepath.Join(c.dir, info.File)
	name := file.Unfinished + info.File
	next := blockInfo{File: name, Step: info.Step, Level: info.Level, Log: info.Log, Of: info.Of}
	w, err := createBlock(c.dir, next)
	if err != nil {
		return nil, err
	}
	w.File = info.File
	for _, e := range good { // the index lacks the time of an entry's first bin, so the block's has to do
		if err := w.write(e.id, info.First, e.last, content[e.offset:e.offset+int64(e.length)]); err != nil {
			w.abort()
			return nil, err
		}
	}
	b, err := w.close()
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, c.setAside(path)
	}
	err = errors.Join(b.file.Close(), file.Quarantine(path), os.Rename(filepath.Join(c.dir, name), path), file.SyncDir(c.dir))
	return &b.blockInfo, err
}
