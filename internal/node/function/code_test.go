package function

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

// entry is a file of a zip file; with a target it's a link.
type entry struct{ name, text, target string }

func zipOf(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.target != "" {
			h.SetMode(os.ModeSymlink | 0o777)
			e.text = e.target
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, e.text) //nolint:errcheck // into memory
	}
	z.Close() //nolint:errcheck // into memory
	return b.Bytes()
}

// open returns the functions of a node whose control plane has one zip file, and its volume.
func open(t *testing.T, dir string, content []byte) (*Functions, acs.Volume) {
	t.Helper()
	f, err := New(Options{Dir: dir, Call: func(context.Context, string, string, http.Header, []byte) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(content))}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return f, acs.Volume{DockerVolumeConfiguration: &acs.DockerVolumeConfiguration{
		Driver: acs.FunctionDriver, DriverOpts: map[string]string{acs.FunctionCode: hex.EncodeToString(sum[:])},
	}}
}

// TestCodeStaysInside: no name and no chain of links leads out of the directory, and nothing of it stays.
func TestCodeStaysInside(t *testing.T) {
	for name, entries := range map[string][]entry{
		"a name":         {{name: "../evil", text: "x"}},
		"a link":         {{name: "l", target: "../.."}},
		"links to links": {{name: "a/b/c/up", target: "../../.."}, {name: "a/b/c/up/out", target: "../../../.."}, {name: "out/evil", text: "x"}},
	} {
		dir := filepath.Join(t.TempDir(), "x/y/z")
		f, v := open(t, dir, zipOf(t, entries...))
		if err := f.Prepare(t.Context(), "task/1", v); err == nil {
			t.Errorf("%s is laid down", name)
		}
		filepath.WalkDir(filepath.Join(dir, "../../.."), func(path string, e os.DirEntry, err error) error { //nolint:errcheck // it returns none
			if err == nil && !e.IsDir() && !strings.Contains(path, "/runtime/") {
				t.Errorf("%s: %s stays", name, path)
			}
			return nil
		})
	}
}

// TestTooMuchCode: what comes out of all zip files of a directory counts.
func TestTooMuchCode(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	for want, u := range map[string]unpacking{"bytes": {root, 9, 10}, "files": {root, 100, 1}} {
		if err := u.unzip(zipOf(t, entry{name: "a", text: "12345"})); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		if err := u.unzip(zipOf(t, entry{name: "b", text: "12345"})); err == nil {
			t.Errorf("there may be more %s than there may", want)
		}
	}
}

// TestEmptyFilesCount: code of nothing but empty files and links takes room on the disk, too, and goes in its turn.
func TestEmptyFilesCount(t *testing.T) {
	f, v := open(t, t.TempDir(), zipOf(t, entry{name: "a"}, entry{name: "b"}, entry{name: "d/c", target: "../a"}))
	if err := f.Prepare(t.Context(), "task/t", v); err != nil {
		t.Fatal(err)
	}
	if got := sizeOf(f.Path("task/t", v)); got < 4*block {
		t.Errorf("two empty files, a link and a directory count as %d bytes", got)
	}
}

// TestOldCodeGoes: the longest unused first, and never what a task shows.
func TestOldCodeGoes(t *testing.T) {
	dir := t.TempDir()
	var all []string
	var last *Functions
	using := map[string][]string{}
	for i, text := range []string{"shown", "old", "new"} {
		f, v := open(t, dir, zipOf(t, entry{name: "f", text: text}, entry{name: "d/l", target: "../f"}))
		task := "task/" + text
		if err := f.Prepare(t.Context(), task, v); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(f.Path(task, v), "d/l")); err != nil || string(b) != text {
			t.Errorf("got %q, %v", b, err)
		}
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(f.Path(task, v), at, at); err != nil {
			t.Fatal(err)
		}
		if text != "shown" {
			f.Release(text)
		}
		using[text] = f.using[text]
		all = append(all, f.Path(task, v))
		last = f
	}
	last.using = using
	is := func(path string) bool { _, err := os.Stat(path); return err == nil }
	last.prune(sizeOf(all[0]) + sizeOf(all[2]))
	if !is(all[0]) || is(all[1]) || !is(all[2]) {
		t.Errorf("there is %v %v %v", is(all[0]), is(all[1]), is(all[2]))
	}
	last.prune(0)
	if !is(all[0]) || is(all[2]) {
		t.Errorf("there is %v %v", is(all[0]), is(all[2]))
	}
}
