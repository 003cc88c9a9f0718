// Command image puts bin/pintle and bin/pintle-shim into a container image, without Docker and without a base image: with the libraries of
// this machine that they load, its certificate authorities, and nothing else. It writes a tarball for docker load. make image runs it;
// where base images can be pulled, the Dockerfile makes the same.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// user is whom the control plane runs as: the number that distroless images have for nonroot.
const user = 65532

// data is the directory of all state, which belongs to user.
const data = "/var/lib/pintle"

// authorities is where the SDKs and Go look for those that certificates are trusted by.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

func main() {
	version := flag.String("version", "dev", "The image's tag.")
	to := flag.String("to", "", "The file to write.")
	flag.Parse()
	if err := write(*to, *version); err != nil {
		log.Fatal("image: ", err)
	}
}

func write(to, version string) error {
	files, err := root()
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil })
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	if image, err = mutate.ConfigFile(image, config(image, version)); err != nil {
		return err
	}
	tag, err := name.NewTag("pintle:" + version)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return tarball.WriteToFile(to, tag, image)
}

// config says how a container of the image runs. The Dockerfile says the same.
func config(image v1.Image, version string) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		log.Fatal("image: ", err) // it was made here
	}
	c.OS, c.Architecture = "linux", runtime.GOARCH
	c.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Env:          []string{"PATH=/usr/bin", "HOME=" + data},
		WorkingDir:   data,
		Entrypoint:   []string{"/usr/bin/pintle"},
		Cmd:          []string{"serve", "--listen", "0.0.0.0:4566", "--data", data},
		ExposedPorts: map[string]struct{}{"4566/tcp": {}},
		Volumes:      map[string]struct{}{data: {}},
		StopSignal:   "SIGTERM",
		Healthcheck:  &v1.HealthConfig{Test: []string{"CMD", "/usr/bin/pintle", "health"}, Interval: 10 * time.Second, Timeout: 5 * time.Second, Retries: 3},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "Pintle",
			"org.opencontainers.image.version":  version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return c
}

// root returns a tarball of the image's files.
func root() ([]byte, error) {
	libraries, err := loaded("bin/pintle")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	t := tree{tar: tar.NewWriter(&out), made: map[string]bool{"/": true}}
	t.dir("/tmp", 0o1777, 0)
	t.dir(data, 0o700, user)
	t.text("/etc/passwd", fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\npintle:x:%d:%d:pintle:%s:/sbin/nologin\n", user, user, data))
	t.text("/etc/group", fmt.Sprintf("root:x:0:\npintle:x:%d:\n", user))
	t.text("/etc/nsswitch.conf", "hosts: files dns\n")
	t.copy("/usr/bin/pintle", "bin/pintle", 0o755)
	t.copy("/usr/bin/pintle-shim", "bin/pintle-shim", 0o755)
	t.copy("/usr/share/doc/pintle/copyright", "LICENSE", 0o644)
	t.copy(authorities, authorities, 0o644)
	for _, l := range libraries {
		t.copy(l, l, 0o755)
	}
	if t.err == nil {
		t.err = t.tar.Close()
	}
	return out.Bytes(), t.err
}

// loaded returns the paths of a program's loader and libraries, with those that NVIDIA's management library wants besides.
func loaded(program string) ([]string, error) {
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w (make build comes first)", program, err)
	}
	var paths []string
	for _, found := range regexp.MustCompile(`(?m)(/\S+) \(0x`).FindAllSubmatch(out, -1) {
		paths = append(paths, string(found[1]))
	}
	i := slices.IndexFunc(paths, func(p string) bool { return strings.HasSuffix(p, "/libc.so.6") })
	if i < 0 {
		return nil, fmt.Errorf("ldd %s names no libc: %s", program, out)
	}
	return append(paths, path.Dir(paths[i])+"/libm.so.6", path.Dir(paths[i])+"/librt.so.1"), nil
}

// tree writes files and the directories above them.
type tree struct {
	tar  *tar.Writer
	made map[string]bool
	err  error
}

func (t *tree) dir(name string, mode int64, owner int) {
	if t.made[name] {
		return
	}
	t.dir(path.Dir(name), 0o755, 0)
	t.made[name] = true
	t.put(&tar.Header{Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: mode, Uid: owner, Gid: owner}, nil)
}

func (t *tree) text(name, text string) { t.file(name, []byte(text), 0o644) }

func (t *tree) copy(name, from string, mode int64) {
	b, err := os.ReadFile(from)
	if t.err == nil {
		t.err = err
	}
	t.file(name, b, mode)
}

func (t *tree) file(name string, b []byte, mode int64) {
	t.dir(path.Dir(name), 0o755, 0)
	t.put(&tar.Header{Typeflag: tar.TypeReg, Name: name[1:], Mode: mode, Size: int64(len(b))}, b)
}

func (t *tree) put(h *tar.Header, b []byte) {
	h.ModTime = time.Unix(0, 0) // the same files are the same layer
	if t.err == nil {
		t.err = t.tar.WriteHeader(h)
	}
	if t.err == nil {
		_, t.err = t.tar.Write(b)
	}
}
