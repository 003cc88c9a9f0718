package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"syscall"
	"time"

	"github.com/docker/go-units"
)

// entry is a file of the cache.
type entry struct {
	path   string // below the cache's directory
	id     string
	size   int64
	used   time.Time
	linked bool // whether a directory has it
}

// entries lists the objects, those on their way included, that the cache has, in the order of their last use.
func (c *Cache) entries() (all []entry) {
	for _, dir := range []string{objectsDir, partialDir} {
		names, err := os.ReadDir(filepath.Join(c.dir, dir))
		if err != nil {
			c.log.Warn("cannot list the objects of data sets", "error", err)
		}
		for _, n := range names {
			i, err := n.Info()
			if err != nil {
				continue // it has just gone
			}
			s := i.Sys().(*syscall.Stat_t)
			all = append(all, entry{
				path:   filepath.Join(dir, n.Name()),
				id:     n.Name(),
				size:   i.Size(),
				used:   time.Unix(s.Atim.Unix()),
				linked: s.Nlink > 1,
			})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].used.Before(all[j].used) })
	return all
}

// makeRoom reserves room for objects, and removes others that no directory has, those unused for longest first. done gives the
// reservation back.
func (c *Cache) makeRoom(objects []object) (done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range objects {
		id := objects[i].id()
		if c.pending[id] == nil {
			c.pending[id] = &pending{size: objects[i].size}
		}
		c.pending[id].waiting++
	}
	done = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.forget(objects)
	}
	if c.budget == 0 {
		return done, nil
	}
	if err := c.fit(); err != nil {
		c.forget(objects)
		return nil, err
	}
	return done, nil
}

// forget ends a reservation. The caller holds mu.
func (c *Cache) forget(objects []object) {
	for i := range objects {
		id := objects[i].id()
		if c.pending[id].waiting--; c.pending[id].waiting == 0 {
			delete(c.pending, id)
		}
	}
}

// fit removes what no directory has and none needs until the rest is within the budget. The caller holds mu.
func (c *Cache) fit() error {
	var needed, mounted, total int64
	for _, p := range c.pending {
		needed += p.size
	}
	var free []entry
	for _, e := range c.entries() {
		switch {
		case c.pending[e.id] != nil: // its whole size is in needed
		case e.linked:
			mounted += e.size
		default:
			free = append(free, e)
			total += e.size
		}
	}
	if needed+mounted > c.budget {
		return fmt.Errorf("%s are needed, but the cache of data sets may have %s, of which running tasks hold %s",
			size(needed), size(c.budget), size(mounted))
	}
	for _, e := range free {
		if needed+mounted+total <= c.budget {
			return nil
		}
		if c.evict(e) {
			total -= e.size
		}
	}
	return nil
}

// evict removes a file of the cache, unless another process is just fetching it. One that links it meanwhile keeps the content.
func (c *Cache) evict(e entry) bool {
	f, err := c.root.OpenFile(e.path, os.O_RDONLY, 0)
	if err != nil {
		return os.IsNotExist(err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if !tryLock(f) {
		return false
	}
	if err := c.root.Remove(e.path); err != nil && !os.IsNotExist(err) {
		c.log.Warn("cannot remove an object of data sets", "object", e.path, "error", err)
		return false
	}
	return true
}

func size(bytes int64) string { return units.BytesSize(float64(bytes)) }
