package runtimetest

import (
	"archive/tar"
	"bytes"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// MakeLayout makes an OCI layout with one image: a tarball of a root file system, and what the image says of its containers.
func MakeLayout(dir, rootfs string, config v1.Config) error {
	layer, err := tarball.LayerFromFile(rootfs)
	if err != nil {
		return err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	if img, err = mutate.Config(img, config); err != nil {
		return err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendImage(img)
}

// MakeImage packs Debian's busybox-static into a tarball of a root file system, under the names that the tests use.
func MakeImage(path string) error {
	program, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	busybox, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	files := map[string]string{
		"bin/busybox": string(busybox),
		"etc/passwd":  "root:x:0:0::/root:/bin/sh\nworker:x:1234:1234::/home:/bin/sh\n",
		"etc/group":   "root:x:0:\nworker:x:1234:\nmore:x:4321:worker\n",
		"data/seed":   "from the image\n",
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}) //nolint:errcheck // Close returns it
		io.WriteString(w, files[name])                                                     //nolint:errcheck // Close returns it
	}
	for _, name := range []string{
		"sh", "cat", "df", "echo", "env", "grep", "hostname", "httpd", "id", "ls", "mount", "ps", "pwd", "sleep", "tail", "touch", "true",
		"wget",
	} {
		link := &tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}
		w.WriteHeader(link) //nolint:errcheck // Close returns it
	}
	w.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o777}) //nolint:errcheck // Close returns it
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}
