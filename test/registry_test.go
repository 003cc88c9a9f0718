package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// TestRegistry: the registry as others see it, where every call needs a login: the suite of the distribution specification, crane and skopeo.
func TestRegistry(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large")
	for _, name := range []string{"suite/one", "suite/two", "team/app", "team/copy"} {
		p.AWS("ecr", "create-repository", "--repository-name", name)
	}
	t.Run("suite", func(t *testing.T) { testRegistrySuite(t, p) })
	path, index := indexFile(t)
	t.Run("crane", func(t *testing.T) { testCrane(t, p, path, index) })
	t.Run("skopeo", func(t *testing.T) { testSkopeo(t, p, path) })
}

// install builds a program of another module, and returns its path.
func install(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "install", program)
	cmd.Env = append(os.Environ(), "GOBIN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s can't be built: %v\n%s", program, err, out)
	}
	path, _, _ := strings.Cut(program, "@")
	return filepath.Join(dir, filepath.Base(path))
}

// The programs that the tests build. The conformance suite of OCI's distribution specification has no releases of its own.
const (
	registrySuite = "github.com/opencontainers/distribution-spec/conformance@v0.0.0-20260831232431-97274622c111"
	crane         = "github.com/google/go-containerregistry/cmd/crane@v0.22.1"
)

// refusedAsByECR are the suite's kinds of tests that need not pass: what a registry may refuse, and ECR does; digests of SHA-512, which ECR
// doesn't know; and images without their layers, which it refuses.
var refusedAsByECR = map[string]string{
	"Blob anonymous mount": "Skip", "Blob delete": "Skip", "Blob delete atomic": "Skip", "Manifest put with tag params": "Skip",
	"Blobs sha512": "Disabled", "Digest Algorithm sha512": "Disabled", "Tag Param sha512": "Disabled", "Sparse Manifests": "Disabled",
}

func testRegistrySuite(t *testing.T, p *Pintle) {
	cmd := p.Command(install(t, registrySuite))
	cmd.Dir = t.TempDir()
	cmd.Env = append(cmd.Env,
		"OCI_REGISTRY="+strings.TrimPrefix(p.Endpoint, "http://"), "OCI_TLS=disabled", "OCI_REPO1=suite/one", "OCI_REPO2=suite/two",
		"OCI_USERNAME=AWS", "OCI_PASSWORD="+p.AWS("ecr", "get-login-password"),
		"OCI_API_BLOBS_UPLOAD_CANCEL=true", "OCI_API_BLOBS_DIGEST_HEADER=true", "OCI_API_MANIFESTS_DIGEST_HEADER=true",
		"OCI_API_MANIFESTS_TAG_PARAM=true", "OCI_DATA_SHA512=false",
	)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the suite: %v\n%s", err, out)
	}
	_, kinds, _ := strings.Cut(string(out), "API conformance:")
	passed := 0
	for _, line := range regexp.MustCompile(`(?m)^  (\w[^.\n]+)\.*: +(\w+)$`).FindAllStringSubmatch(kinds, -1) {
		switch {
		case line[2] == "Pass":
			passed++
		case line[2] != refusedAsByECR[line[1]]:
			t.Errorf("%s: %s", line[1], line[2])
		}
	}
	if passed < 44 {
		t.Errorf("only %d kinds of tests passed:\n%s", passed, out)
	}
}

// indexFile writes an image for two platforms as an OCI layout.
func indexFile(t *testing.T) (path, digest string) {
	t.Helper()
	var index v1.ImageIndex = empty.Index
	for _, architecture := range []string{"amd64", "arm64"} {
		image, err := random.Image(1<<20, 2)
		if err != nil {
			t.Fatal(err)
		}
		platform := &v1.Platform{OS: "linux", Architecture: architecture}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		config.OS, config.Architecture = platform.OS, platform.Architecture
		if image, err = mutate.ConfigFile(image, config); err != nil {
			t.Fatal(err)
		}
		image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	path = t.TempDir()
	l, err := layout.Write(path, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AppendIndex(index); err != nil {
		t.Fatal(err)
	}
	d, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return path, d.String()
}

// sign pushes something that is about an image, and returns its digest.
func sign(t *testing.T, p *Pintle, image string) string {
	t.Helper()
	subject, err := remote.Head(p.registry(image), p.login())
	if err != nil {
		t.Fatal(err)
	}
	signature, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	about := mutate.Subject(signature, *subject).(v1.Image)
	d, err := about.Digest()
	if err != nil {
		t.Fatal(err)
	}
	repository, _, _ := strings.Cut(image, "@")
	if err := remote.Write(p.registry(repository+"@"+d.String()), about, p.login()); err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// client returns a program that must do what it's told.
func client(t *testing.T, p *Pintle, path string, first ...string) func(args ...string) string {
	config := "DOCKER_CONFIG=" + t.TempDir()
	return func(args ...string) string {
		t.Helper()
		cmd := p.Command(path, append(first, args...)...)
		cmd.Env = append(cmd.Env, config)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", filepath.Base(path), args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
}

// testCrane pushes an image for two platforms, copies it and its signature to another repository, and deletes it.
func testCrane(t *testing.T, p *Pintle, path, index string) {
	run := client(t, p, install(t, crane))
	host := strings.TrimPrefix(p.Endpoint, "http://")
	app, copied := host+"/team/app", host+"/team/copy"
	run("auth", "login", host, "-u", "AWS", "-p", p.AWS("ecr", "get-login-password"))
	run("push", path, app+":crane")
	if got := run("digest", app+":crane"); got != index {
		t.Errorf("pushed %s, and there is %s", index, got)
	}
	signature := sign(t, p, "team/app@"+index)
	run("copy", app+":crane", copied+":crane")
	run("copy", app+"@"+signature, copied+"@"+signature)
	run("validate", "--remote", copied+":crane")
	d, err := name.NewDigest(copied + "@" + index)
	if err != nil {
		t.Fatal(err)
	}
	referrers, err := remote.Referrers(d, p.login())
	if err != nil {
		t.Fatal(err)
	}
	about, err := referrers.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(about.Manifests) != 1 || about.Manifests[0].Digest.String() != signature {
		t.Errorf("about the copy there is %v", about.Manifests)
	}
	run("tag", copied+":crane", "second")
	run("delete", copied+":crane")
	if got := run("ls", copied); got != "second" {
		t.Errorf("the copy has the tags %q", got)
	}
	run("delete", copied+"@"+index)
	if got := run("ls", copied); got != "" {
		t.Errorf("once the copy is deleted there are %q", got)
	}
}

// testSkopeo does the same with Debian's skopeo.
func testSkopeo(t *testing.T, p *Pintle, path string) {
	skopeo, err := exec.LookPath("skopeo")
	if err != nil {
		t.Fatal("this test needs Debian's skopeo: ", err)
	}
	host := strings.TrimPrefix(p.Endpoint, "http://")
	app, copied := "docker://"+host+"/team/app", "docker://"+host+"/team/copy"
	run := client(t, p, skopeo)
	accounts := filepath.Join(t.TempDir(), "auth.json")
	run("login", "--tls-verify=false", "--authfile", accounts, "-u", "AWS", "-p", p.AWS("ecr", "get-login-password"), host)
	every := []string{"copy", "--all", "--authfile", accounts, "--dest-tls-verify=false", "--src-tls-verify=false"}
	from := func(args ...string) string {
		t.Helper()
		return run(append(args[:1:1], append([]string{"--authfile", accounts, "--tls-verify=false"}, args[1:]...)...)...)
	}
	run(append(every, "oci:"+path, app+":skopeo")...) // which writes an index of its own: it doesn't know all that is in this one
	run(append(every, "--preserve-digests", app+":skopeo", copied+":skopeo")...)
	pushed := from("inspect", "--raw", app+":skopeo")
	if !strings.Contains(pushed, "amd64") || !strings.Contains(pushed, "arm64") {
		t.Errorf("pushed %s", pushed)
	}
	if got := from("inspect", "--raw", copied+":skopeo"); got != pushed {
		t.Errorf("pushed %s\nand copied %s", pushed, got)
	}
	if got := from("list-tags", copied); !strings.Contains(got, `"skopeo"`) {
		t.Errorf("the copy's tags are %s", got)
	}
	from("delete", copied+":skopeo")
	if got := from("list-tags", copied); strings.Contains(got, `"skopeo"`) {
		t.Errorf("once the copy is deleted its tags are %s", got)
	}
}
