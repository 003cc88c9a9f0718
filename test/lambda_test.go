package test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// TestFunctions runs functions as plain processes of this machine's own Python, through boto3.
func TestFunctions(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=1")
	if out, err := p.Command(python, "lambda.py").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// functions runs functions in containers: one that is an image, one of a runtime whose image the operator names, and one that brings its runtime
// and has a GPU. The program speaks the Runtime API and says what it sees; as /lambda-entrypoint.sh it stands in for AWS's base images.
func (c *containers) functions(t *testing.T) {
	program := functionProgram(t)
	c.AWS("ecr", "create-repository", "--repository-name", "fn")
	for tag, entry := range map[string]string{"own": "/usr/bin/function", "base": "/lambda-entrypoint.sh"} {
		if err := remote.Write(c.registry("fn:"+tag), imageOf(t, program, entry), c.login(), remote.WithContext(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	zipped := zipFile(t, map[string][]byte{"bootstrap": program, "code.txt": []byte("of the code")})
	const role = "arn:aws:iam::000000000000:role/r"
	for name, options := range map[string][]string{
		"image": {"--package-type", "Image", "--code", "ImageUri=" + imageHost + "fn:own", "--image-config", "Command=a,b,WorkingDirectory=/usr"},
		"base":  {"--runtime", "python3.12", "--handler", "app.handler", "--zip-file", "fileb://" + zipped},
		"own":   {"--runtime", "provided.al2023", "--handler", "x", "--zip-file", "fileb://" + zipped, "--tags", "pintle:gpu=1"},
	} {
		c.AWS(append([]string{"lambda", "create-function", "--function-name", name, "--role", role, "--timeout", "20"}, options...)...)
	}
	for _, f := range []struct {
		name, directory string
		args            []string
		files           int
		hasGPU          bool
	}{
		{"image", "/usr", []string{"/usr/bin/function", "a", "b"}, 0, false},
		{"base", "", []string{"/lambda-entrypoint.sh", "app.handler"}, 1, false},
		{"own", "/var/task", []string{"/var/task/bootstrap"}, 1, true},
	} {
		answer := filepath.Join(t.TempDir(), "answer")
		c.AWS("lambda", "invoke", "--function-name", f.name, answer)
		text, err := os.ReadFile(answer)
		if err != nil {
			t.Fatal(err)
		}
		var saw struct {
			Args      []string
			Directory string
			Env       map[string]string
			Files     map[string]string
			Writable  []string
			TmpMiB    int
		}
		if err := json.Unmarshal(text, &saw); err != nil {
			t.Fatalf("%s answers %s", f.name, text)
		}
		hasGPU := saw.Env["NVIDIA_VISIBLE_DEVICES"] != "void"
		if !slices.Equal(saw.Args, f.args) || f.directory != "" && saw.Directory != f.directory || len(saw.Files) != f.files ||
			!slices.Equal(saw.Writable, []string{"/tmp"}) || saw.TmpMiB < 400 || saw.TmpMiB > 512 || hasGPU != f.hasGPU {
			t.Errorf("%s sees %s", f.name, text)
		}
	}
}

// functionProgram builds testdata/function.
func functionProgram(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "function")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", path, "./testdata/function")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// imageOf returns an image with nothing but a program, which it runs.
func imageOf(t *testing.T, program []byte, entry string) v1.Image {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: entry[1:], Mode: 0o755, Size: int64(len(program))}) //nolint:errcheck // Close returns it
	w.Write(program)                                                                    //nolint:errcheck // Close returns it
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	image, err = mutate.Config(image, v1.Config{Entrypoint: []string{entry}})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// zipFile writes a zip file of programs, and returns its path.
func zipFile(t *testing.T, files map[string][]byte) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(0o755)
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(text) //nolint:errcheck // Close returns it
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "code.zip")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
