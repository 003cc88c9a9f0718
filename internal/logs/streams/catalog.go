package streams

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/wal"
)

// catalog lists the groups, so that the store notices if a group's files are gone.
type catalog struct {
	Next   int            // above every number in use
	Groups map[int]string // names by number
}

const catalogFile = "catalog"

func (c *catalog) add(id int, name string) {
	if c.Groups == nil {
		c.Groups = map[int]string{}
	}
	c.Groups[id] = name
	c.Next = max(c.Next, id+1)
}

func (c *catalog) clone() catalog { return catalog{c.Next, maps.Clone(c.Groups)} }

func (c *catalog) write(dir string) error { return errors.Join(c.replace(dir), file.SyncDir(dir)) }

// replace is write without the directory's sync.
func (c *catalog) replace(dir string) error {
	return file.WriteSealed(filepath.Join(dir, catalogFile), c, true)
}

// read reads the catalog, which needn't exist while there are no groups.
func (c *catalog) read(dir string, ids []int) error {
	path := filepath.Join(dir, catalogFile)
	err := file.ReadSealed(path, c)
	if !errors.Is(err, os.ErrNotExist) || len(ids) == 0 {
		return ignoreMissing(err)
	}
	return &file.Damage{Path: path, Offset: -1, What: "is missing"}
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// missing returns the damage of a group whose directory is gone.
func (c *catalog) missing(dir string, id int) *file.Damage {
	return &file.Damage{
		Path:   groupDir(dir, id),
		Offset: -1,
		What:   fmt.Sprintf("the directory of log group %s is missing", c.Groups[id]),
		Repair: "forgets the group; its events are lost",
	}
}

func groupDir(dir string, id int) string { return filepath.Join(dir, strconv.Itoa(id)) }

// groupIDs lists the numbers of the groups that have directories.
func groupIDs(dir string) (ids []int, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, ignoreMissing(err)
}

// unfinished returns the name of a group's directory until it is complete, and while it is being removed.
func unfinished(dir string, id int) string {
	return filepath.Join(dir, file.Unfinished+strconv.Itoa(id))
}

// makeGroup makes a group's directory, completely or not at all.
func makeGroup(dir string, id int, meta Group) error {
	path := unfinished(dir, id)
	if err := errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o700)); err != nil {
		return err
	}
	log, err := wal.Open(path, wal.Options{Kind: logKind}, nil)
	if err == nil {
		err = log.Close()
	}
	if err = errors.Join(err, writeMeta(path, meta)); err == nil {
		err = os.Rename(path, groupDir(dir, id))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(path))
	}
	if err := file.SyncDir(dir); err != nil {
		return errors.Join(err, removeGroup(dir, id))
	}
	return nil
}

// removeGroup removes a group's directory. If it's interrupted, the rest doesn't count as a group.
func removeGroup(dir string, id int) error {
	path := unfinished(dir, id)
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if err := os.Rename(groupDir(dir, id), path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// Check lists the damage in the directory of a store that isn't open. With repair, it rebuilds the store from what is whole and keeps
// the damaged files beside it.
func Check(dir string, repair bool) (found []file.Damage, err error) {
	ids, err := groupIDs(dir)
	if err != nil {
		return nil, err
	}
	var c catalog
	changed := false
	if damage := new(file.Damage); errors.As(c.read(dir, ids), &damage) {
		damage.Repair = "rebuilds it from the existing groups"
		found = append(found, *damage)
		changed = true
	} else if err := c.read(dir, ids); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, known := c.Groups[id]; !known && id < c.Next {
			continue // it was deleted, and Open removes the rest
		}
		more, name, err := checkGroup(groupDir(dir, id), c.Groups[id], repair)
		found = append(found, more...)
		if err != nil {
			return found, err
		}
		c.add(id, name)
	}
	for id := range maps.Clone(c.Groups) {
		if !slices.Contains(ids, id) {
			found = append(found, *c.missing(dir, id))
			changed = true
			delete(c.Groups, id)
		}
	}
	if !repair || !changed {
		return found, nil
	}
	if err := ignoreMissing(file.Quarantine(filepath.Join(dir, catalogFile))); err != nil {
		return found, err
	}
	return found, c.write(dir)
}

// checkGroup checks a group's directory and returns the group's name. name is the name in the catalog, or "". The group keeps it if its
// description is lost.
func checkGroup(dir, name string, repair bool) (found []file.Damage, actual string, err error) {
	found, err = wal.Check(dir, logKind, repair)
	if err != nil {
		return found, name, err
	}
	if _, err := os.Stat(filepath.Join(dir, "marker")); errors.Is(err, os.ErrNotExist) && len(found) == 0 {
		found = append(found, file.Damage{
			Path:   filepath.Join(dir, "marker"),
			Offset: -1,
			What:   "is missing",
			Repair: "makes an empty log",
		})
		if repair {
			if err := makeLog(dir); err != nil {
				return found, name, err
			}
		}
	}
	var meta Group
	err = readMeta(dir, &meta)
	damage := new(file.Damage)
	if !errors.As(err, &damage) {
		return found, meta.Name, err
	}
	if name == "" {
		name = "recovered-" + filepath.Base(dir)
	}
	damage.Repair = fmt.Sprintf("makes a new one; the group is called %s, and its retention, class, key, tags and filters are lost", name)
	found = append(found, *damage)
	if !repair {
		return found, name, nil
	}
	return found, name, replaceMeta(dir, name)
}

// makeLog makes an empty log if there is none.
func makeLog(dir string) error {
	log, err := wal.Open(dir, wal.Options{Kind: logKind}, nil)
	if err != nil {
		return err
	}
	return log.Close()
}

// replaceMeta writes a new description of a group, and keeps the damaged one beside it.
func replaceMeta(dir, name string) error {
	path := filepath.Join(dir, metaFile)
	if err := ignoreMissing(file.Quarantine(path)); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return writeMeta(dir, Group{Name: name, CreatedAt: info.ModTime().Truncate(time.Millisecond).UnixMilli()})
}
