package objects

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// versioned is the simplest bucket with versions: a list of each key's versions, the newest last.
type versioned struct {
	state string // of versioning, as JSON; "" if it was never set
	keys  map[string][]*Object
}

// add puts a version on top. A null version takes the place of another.
func (v *versioned) add(o *Object) {
	if o.Version == Null {
		v.keys[o.Key] = slices.DeleteFunc(v.keys[o.Key], func(o *Object) bool { return o.Version == Null })
	}
	v.keys[o.Key] = append(v.keys[o.Key], o)
}

// list returns what a list of all versions shows: the newest of each key first.
func (v *versioned) list() (shown []string) {
	for key, all := range v.keys {
		for i, o := range all {
			shown = append(shown, show(&Object{Key: key, Version: o.Version, Marker: o.Marker, Latest: i == len(all)-1}, len(all)-i))
		}
	}
	slices.Sort(shown)
	return shown
}

func show(o *Object, age int) string {
	return fmt.Sprint(o.Key, " ", age, " ", o.Version, " marker ", o.Marker, " latest ", o.Latest)
}

// TestVersions compares a bucket, whose versioning is switched on and off, with the simplest one: what is read, listed in pages, and left.
func TestVersions(t *testing.T) {
	s := newStore(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		if n++; n > 30 { // each step waits for the disk
			return
		}
		bucket := fmt.Sprint("bucket", n)
		if err := s.CreateBucket(t.Context(), bucket, nil); err != nil {
			t.Fatal(err)
		}
		m := &versioned{keys: map[string][]*Object{}}
		key := rapid.SampledFrom([]string{"a", "a/b", "b"})
		version := func(t *rapid.T, key string) string {
			named := []string{"", Null, fmt.Sprintf("%032x", 1)}
			for _, o := range m.keys[key] {
				named = append(named, o.Version)
			}
			return rapid.SampledFrom(named).Draw(t, "version")
		}
		find := func(key, version string) (int, *Object) {
			all := m.keys[key]
			for i, o := range all {
				if o.Version == version || version == "" && i == len(all)-1 {
					return i, o
				}
			}
			return -1, nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				m.state = rapid.SampledFrom([]string{`"Enabled"`, `"Suspended"`}).Draw(t, "state")
				if err := s.Set(t.Context(), bucket, Versioning, json.RawMessage(m.state)); err != nil {
					t.Fatal(err)
				}
			},
			"put": func(t *rapid.T) {
				o := &Object{Bucket: bucket, Key: key.Draw(t, "key")}
				if err := s.Put(t.Context(), o, []*File{{}}, Conditions{}); err != nil {
					t.Fatal(err)
				}
				if (o.Version == Null) != (m.state != `"Enabled"`) {
					t.Fatalf("with versioning %s the new version is %s", m.state, o.Version)
				}
				m.add(o)
			},
			"delete": func(t *rapid.T) {
				key := key.Draw(t, "key")
				version := version(t, key)
				o, err := s.Delete(t.Context(), bucket, key, version, Conditions{})
				if err != nil {
					t.Fatal(err)
				}
				if version == "" && m.state != "" {
					m.add(o)
					return
				}
				i, want := find(key, version)
				if (o == nil) != (want == nil) || o != nil && o.ID != want.ID {
					t.Fatalf("deleted %+v, want %+v", o, want)
				}
				if want != nil {
					m.keys[key] = slices.Delete(m.keys[key], i, i+1)
				}
			},
			"describe": func(t *rapid.T) {
				key := key.Draw(t, "key")
				version := version(t, key)
				_, want := find(key, version)
				o, err := s.Describe(t.Context(), bucket, key, version, func(o *Object) error {
					o.Attributes = json.RawMessage(fmt.Sprintf("%q", o.ID))
					return nil
				}, Conditions{})
				if (err == nil) != (present(want) != nil) || err == nil && o.ID != want.ID {
					t.Fatalf("described %+v, %v, want %+v", o, err, want)
				}
				if got, err := s.Object(t.Context(), bucket, key, version); err == nil && string(got.Attributes) != `"`+got.ID+`"` {
					t.Fatalf("%s %s is described as %s", key, version, got.Attributes)
				}
			},
			"read": func(t *rapid.T) {
				key := key.Draw(t, "key")
				version := version(t, key)
				_, want := find(key, version)
				got, err := s.Object(t.Context(), bucket, key, version)
				var deleted *DeletedError
				switch {
				case want == nil:
					if !errors.Is(err, ErrNoObject) && !errors.Is(err, ErrNoVersion) {
						t.Fatalf("%+v, %v, want none", got, err)
					}
				case want.Marker:
					if !errors.As(err, &deleted) || deleted.Marker.Version != want.Version {
						t.Fatalf("%+v, %v, want a marker", got, err)
					}
				case err != nil || got.ID != want.ID:
					t.Fatalf("%+v, %v, want %+v", got, err, want)
				}
			},
			"": func(t *rapid.T) { checkLists(t, s, bucket, m) },
		})
	})
}

// checkLists compares both lists of a bucket with the model, in pages of two.
func checkLists(t *rapid.T, s *Store, bucket string, m *versioned) {
	var shown []string
	last, age := "", 0
	for q := (Query{Versions: true, Limit: 2, Skip: true}); ; {
		page, err := s.List(t.Context(), bucket, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Objects {
			if age++; o.Key != last {
				last, age = o.Key, 1
			}
			shown = append(shown, show(o, age))
		}
		if !page.More {
			break
		}
		q.After, q.AfterVersion = page.Last, page.LastVersion
	}
	slices.Sort(shown)
	if want := m.list(); !slices.Equal(shown, want) {
		t.Fatalf("listed\n%s, want\n%s", strings.Join(shown, "\n"), strings.Join(want, "\n"))
	}
	page, err := s.List(t.Context(), bucket, Query{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	live := 0
	for key, all := range m.keys {
		if len(all) > 0 && !all[len(all)-1].Marker {
			live++
			if !slices.ContainsFunc(page.Objects, func(o *Object) bool { return o.Key == key && o.ID == all[len(all)-1].ID }) {
				t.Fatalf("%s is not listed", key)
			}
		}
	}
	if live != len(page.Objects) {
		t.Fatalf("%d objects are listed, want %d", len(page.Objects), live)
	}
}

// TestRepairPromotes: where a repair takes the latest version away, the one before it is the latest.
func TestRepairPromotes(t *testing.T) {
	s := newStore(t)
	if err := s.Set(t.Context(), "b", Versioning, json.RawMessage(`"Enabled"`)); err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", []byte("before"))
	put(t, s, "k", make([]byte, small+1))
	if err := flip(5)(objectFile(t, s)); err != nil {
		t.Fatal(err)
	}
	dir := s.dir
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if damage, err := Check(t.Context(), dir, true); err != nil || len(damage) != 1 {
		t.Errorf("the repair finds %v, %v", damage, err)
	}
	if s = open(t, dir); string(read(t, s, "k")) != "before" {
		t.Error("the version before the damaged one isn't the latest")
	}
}

// TestListContinuesAfterAGoneVersion: a list continues after a version that was deleted since the last page, as whoever empties a bucket
// needs.
func TestListContinuesAfterAGoneVersion(t *testing.T) {
	s := newStore(t)
	if err := s.Set(t.Context(), "b", Versioning, json.RawMessage(`"Enabled"`)); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		put(t, s, "k", []byte("x"))
	}
	q := Query{Versions: true, Limit: 2}
	deleted := 0
	for {
		page, err := s.List(t.Context(), "b", q)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Objects {
			if _, err := s.Delete(t.Context(), "b", o.Key, o.Version, Conditions{}); err != nil {
				t.Fatal(err)
			}
			deleted++
		}
		if !page.More {
			break
		}
		q.After, q.AfterVersion = page.Last, page.LastVersion
	}
	if err := s.DeleteBucket(t.Context(), "b"); err != nil || deleted != 5 {
		t.Errorf("deleted %d versions; the bucket: %v", deleted, err)
	}
}
