package test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const imageHost = "000000000000.dkr.ecr.us-east-1.amazonaws.com/"

// registry returns an image's reference at the control plane's own address.
func (p *Pintle) registry(image string) name.Reference {
	p.t.Helper()
	r, err := name.ParseReference(strings.TrimPrefix(p.Endpoint, "http://") + "/" + image)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// login logs in as docker login does with the AWS CLI's password.
func (p *Pintle) login() remote.Option {
	p.t.Helper()
	return remote.WithAuth(&authn.Basic{Username: "AWS", Password: p.AWS("ecr", "get-login-password")})
}

// busybox is an image of one layer.
func busybox(t testing.TB) v1.Image {
	t.Helper()
	layer, err := tarball.LayerFromFile(rootfs(t))
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	image, err = mutate.Config(image, v1.Config{Env: []string{"PATH=/bin", "FROM=image"}, Cmd: []string{"sh", "-c", "echo no command"}})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// TestImages pushes an image, kills the control plane, and runs tasks of the image as ECR names it, where every signature is checked: by its
// tag, by its digest, and as a role that may not pull it; and as another registry names it, which this one stands in for.
func TestImages(t *testing.T) {
	t.Parallel()
	t.Run("oci", func(t *testing.T) {
		t.Parallel()
		testImages(t, UpSigned(t, "g4dn.xlarge", "--runtime", "oci", "--mirror", "public.ecr.aws=team"))
	})
	t.Run("docker", func(t *testing.T) {
		t.Parallel()
		testImages(t, UpSigned(t, "g4dn.xlarge", "--runtime", "docker", "--docker-host", dockerd(t), "--mirror", "public.ecr.aws=team"))
	})
}

func testImages(t *testing.T, p *Pintle) {
	image := busybox(t)
	for _, repository := range []string{"team/app", "private"} {
		p.AWS("ecr", "create-repository", "--repository-name", repository)
		if err := remote.Write(p.registry(repository+":v1"), image, p.login(), remote.WithContext(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	p.Kill()
	p.Start()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"puller", "nobody"} {
		p.AWS("iam", "create-role", "--role-name", role, "--assume-role-policy-document",
			`{"Statement":{"Effect":"Allow","Principal":{"Service":"ecs-tasks.amazonaws.com"},"Action":"sts:AssumeRole"}}`)
	}
	p.AWS("iam", "attach-role-policy", "--role-name", "puller", "--policy-arn", "arn:aws:iam::aws:policy/service-role/AmazonECSTaskExecutionRolePolicy")
	for _, c := range []struct{ family, image, role, want string }{
		{"nobody", imageHost + "team/app:v1", `,"executionRoleArn":"arn:aws:iam::000000000000:role/nobody"`, "CannotPullECRContainerError"},
		{"tag", imageHost + "team/app:v1", "", "0"},
		{"digest", imageHost + "team/app@" + digest.String(), "", "0"},
		{"role", imageHost + "team/app:v1", `,"executionRoleArn":"arn:aws:iam::000000000000:role/puller"`, "0"},
		{"none", imageHost + "team/app:v2", "", "CannotPullContainerError"},
		{"mirrored", "public.ecr.aws/app:v1", `,"executionRoleArn":"arn:aws:iam::000000000000:role/nobody"`, "0"},
		{"outside", "public.ecr.aws/../private:v1", `,"executionRoleArn":"arn:aws:iam::000000000000:role/nobody"`, "CannotPullContainerError"},
	} {
		p.AWS("ecs", "register-task-definition", "--cli-input-json", fmt.Sprintf(
			`{"family":%q,"containerDefinitions":[{"name":"main","image":%q,"command":["sh","-c","test $FROM = image"],"memory":32}]%s}`,
			c.family, c.image, c.role))
		task, _ := p.run(t, c.family, `{}`)
		p.Await(task, "STOPPED")
		got := p.AWS("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].containers[0].[exitCode,imageDigest,reason,stoppedReason]", "--output", "text")
		if !strings.Contains(got, c.want) || c.want == "0" && !strings.Contains(got, digest.String()) {
			t.Errorf("%s: %s", c.family, got)
		}
	}
}

// TestUploadAfterKill: an upload of a layer goes on after a SIGKILL where it was.
func TestUploadAfterKill(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.large")
	p.AWS("ecr", "create-repository", "--repository-name", "app")
	ask := func(method, path string, body io.Reader, want int) http.Header {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, p.Endpoint+path, body)
		if err != nil {
			t.Fatal(err)
		}
		out, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Body.Close()
		if out.StatusCode != want {
			t.Fatalf("%s %s: %s", method, path, out.Status)
		}
		return out.Header
	}
	layer, err := random.Layer(5<<20, "application/vnd.oci.image.layer.v1.tar")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layer.Digest()
	if err != nil {
		t.Fatal(err)
	}
	body, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	at := ask("POST", "/v2/app/blobs/uploads/", nil, 202).Get("Location")
	for n := 0; n < len(b); n += 1 << 20 {
		ask("PATCH", at, bytes.NewReader(b[n:min(len(b), n+1<<20)]), 202)
		p.Kill()
		p.Start()
		if has := ask("GET", at, nil, 204).Get("Range"); has != fmt.Sprintf("0-%d", min(len(b), n+1<<20)-1) {
			t.Fatalf("after %d bytes and a kill there are %s", n+1<<20, has)
		}
	}
	ask("PUT", at+"?digest="+digest.String(), nil, 201)
	p.Kill()
	p.Start()
	ask("GET", "/v2/app/blobs/"+digest.String(), nil, 200)
}

// docker runs Docker's own client at an engine, with a configuration that ends with the test.
func (p *Pintle) docker(host, stdin string, args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "docker", append([]string{"--config", p.data + "/docker", "-H", host}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("docker %v: %v: %s", args, err, out)
	}
	return string(out)
}

// dockerPush makes a repository and pushes an image of busybox to it, as the AWS CLI's and Docker's users do. It returns the image's reference
// at the control plane's own address.
func (p *Pintle) dockerPush(host, repository, tag string) string {
	p.t.Helper()
	p.AWS("ecr", "create-repository", "--repository-name", repository)
	var packed bytes.Buffer
	local, err := name.NewTag("box:1")
	if err != nil {
		p.t.Fatal(err)
	}
	if err := tarball.Write(local, busybox(p.t), &packed); err != nil {
		p.t.Fatal(err)
	}
	p.docker(host, packed.String(), "load")
	image := p.registry(repository + ":" + tag)
	p.docker(host, p.AWS("ecr", "get-login-password"), "login", "--username", "AWS", "--password-stdin", image.Context().RegistryStr())
	p.docker(host, "", "tag", "box:1", image.Name())
	p.docker(host, "", "push", image.Name())
	p.docker(host, "", "rmi", image.Name(), "box:1")
	return image.Name()
}

// TestDockerPushes: docker login, push and pull with the AWS CLI's password.
func TestDockerPushes(t *testing.T) {
	t.Parallel()
	host := dockerd(t)
	p := UpSigned(t, "c5.large")
	image := p.dockerPush(host, "team/app", "v1")
	p.docker(host, "", "pull", image)
	pulled, err := remote.Image(p.registry("team/app:v1"), p.login(), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(pulled); err != nil {
		t.Error(err)
	}
	digest, err := pulled.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got := p.AWS("ecr", "describe-images", "--repository-name", "team/app", "--query", "imageDetails[].[imageDigest,imageTags[0]]", "--output", "text"); got != digest.String()+"\tv1" {
		t.Errorf("ECR describes %q", got)
	}
}
