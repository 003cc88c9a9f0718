package plane

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// logIn returns the password that a caller gets.
func logIn(t *testing.T, c aws.Config) remote.Option {
	t.Helper()
	out, err := ecr.NewFromConfig(c).GetAuthorizationToken(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := base64.StdEncoding.DecodeString(*out.AuthorizationData[0].AuthorizationToken)
	if err != nil {
		t.Fatal(err)
	}
	user, password, _ := strings.Cut(string(text), ":")
	return remote.WithAuth(&authn.Basic{Username: user, Password: password})
}

func (p *Plane) reference(t *testing.T, image string) name.Reference {
	t.Helper()
	r, err := name.ParseReference(strings.TrimPrefix(p.Endpoint(), "http://")+"/"+image, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func createRepository(t *testing.T, p *Plane, repository string) {
	t.Helper()
	if _, err := p.ECR.CreateRepository(t.Context(), &ecr.CreateRepositoryInput{RepositoryName: &repository}); err != nil {
		t.Fatal(err)
	}
}

func randomImage(t *testing.T) v1.Image {
	t.Helper()
	i, err := random.Image(100_000, 2)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// status returns the status with which a registry refuses.
func status(err error) string {
	if refused, ok := err.(*transport.Error); ok && len(refused.Errors) > 0 { //nolint:errorlint // a test's own
		return fmt.Sprintf("%d %s", refused.StatusCode, refused.Errors[0].Code)
	}
	return fmt.Sprint(err)
}

// TestRegistryOpen: on loopback without a key anybody pushes and pulls, with any password or none; hosts are ECR's, localhost and others.
func TestRegistryOpen(t *testing.T) {
	p := serve(t, Options{})
	createRepository(t, p, "team/app")
	image := randomImage(t)
	if err := remote.Write(p.reference(t, "team/app:v1"), image, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, option := range []remote.Option{
		remote.WithAuth(authn.Anonymous), remote.WithAuth(&authn.Basic{Username: "AWS", Password: "x"}), logIn(t, p.config("test", "test", "")),
	} {
		if _, err := remote.Image(p.reference(t, "team/app:v1"), option, remote.WithContext(t.Context())); err != nil {
			t.Error(err)
		}
	}
	for host, want := range map[string]int{
		"000000000000.dkr.ecr.us-east-1.amazonaws.com":  200,
		"000000000000.dkr.ecr.us-east-1.localhost:4566": 200,
		"localhost:4566":   200,
		"evil.example.com": 403,
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", p.Endpoint()+"/v2/team/app/manifests/v1", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		out, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		out.Body.Close()
		if out.StatusCode != want {
			t.Errorf("%s: %d", host, out.StatusCode)
		}
	}
	out, err := ecr.NewFromConfig(p.config("test", "test", "")).DescribeImages(t.Context(), &ecr.DescribeImagesInput{RepositoryName: aws.String("team/app")})
	if err != nil || len(out.ImageDetails) != 1 {
		t.Errorf("it describes %v: %v", out, err)
	}
}

// TestRegistryEnforcedOnLoopback: whoever shows a password there must have a good one.
func TestRegistryEnforcedOnLoopback(t *testing.T) {
	p := serve(t, Options{EnforceIAM: true})
	createRepository(t, p, "app")
	head := func(option remote.Option) string {
		_, err := remote.Head(p.reference(t, "app:v1"), option, remote.WithContext(t.Context()))
		return err.Error()
	}
	for what, option := range map[string]remote.Option{
		"nobody":    remote.WithAuth(authn.Anonymous),
		"the owner": logIn(t, p.config("test", "test", "")),
	} {
		if got := head(option); !strings.Contains(got, "404") {
			t.Errorf("%s: %s", what, got)
		}
	}
	if got := head(remote.WithAuth(&authn.Basic{Username: "AWS", Password: "x"})); !strings.Contains(got, "401") {
		t.Errorf("a guess: %s", got)
	}
}

// TestRegistryVerified: where signatures are checked, a password is needed, and it opens what its caller may do.
func TestRegistryVerified(t *testing.T) {
	p := serveSigned(t)
	createRepository(t, p, "app")
	createRepository(t, p, "other")
	image := randomImage(t)
	owner := logIn(t, p.config("AKID", "secret", ""))
	for _, repository := range []string{"app:v1", "other:v1"} {
		if err := remote.Write(p.reference(t, repository), image, owner, remote.WithContext(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	for what, option := range map[string]remote.Option{
		"nobody":           remote.WithAuth(authn.Anonymous),
		"a guess":          remote.WithAuth(&authn.Basic{Username: "AWS", Password: "x"}),
		"the owner's keys": remote.WithAuth(&authn.Basic{Username: "AKID", Password: "secret"}),
	} {
		if _, err := remote.Head(p.reference(t, "app:v1"), option, remote.WithContext(t.Context())); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("%s: %v", what, err)
		}
	}
	createRole(t, p, "puller", `{"Effect": "Allow", "Action": "ecr:GetAuthorizationToken", "Resource": "*"},
		{"Effect": "Allow", "Action": ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"], "Resource": "arn:aws:ecr:us-east-1:000000000000:repository/app"}`)
	task := logIn(t, asTask(t, p, "puller"))
	get := func(image string) error {
		i, err := remote.Image(p.reference(t, image), task, remote.WithContext(t.Context()))
		if err != nil {
			return err
		}
		layers, err := i.Layers()
		if err != nil {
			return err
		}
		body, err := layers[0].Compressed()
		if err != nil {
			return err
		}
		defer body.Close()
		_, err = io.Copy(io.Discard, body)
		return err
	}
	if err := get("app:v1"); err != nil {
		t.Error(err)
	}
	if got := status(get("other:v1")); got != "403 DENIED" {
		t.Errorf("another repository: %s", got)
	}
	if got := status(remote.Write(p.reference(t, "app:v2"), image, task, remote.WithContext(t.Context()))); !strings.Contains(got, "403") {
		t.Errorf("a push: %s", got)
	}
	_, err := p.ECR.SetRepositoryPolicy(t.Context(), &ecr.SetRepositoryPolicyInput{RepositoryName: aws.String("other"), PolicyText: aws.String(
		`{"Statement": {"Effect": "Allow", "Principal": {"AWS": "` + roleARNs + `puller"}, "Action": ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := get("other:v1"); err != nil {
		t.Errorf("with the repository's policy: %v", err)
	}
	putTask(t, p, "STOPPED")
	if err := get("app:v1"); err == nil || !strings.Contains(err.Error(), "UNAUTHORIZED") {
		t.Errorf("after the task: %v", err)
	}
}

// TestRegistryURLs: the URL of a layer opens that layer to anybody.
func TestRegistryURLs(t *testing.T) {
	p := serveSigned(t)
	createRepository(t, p, "app")
	image := randomImage(t)
	c := p.config("AKID", "secret", "")
	if err := remote.Write(p.reference(t, "app:v1"), image, logIn(t, c), remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ecr.NewFromConfig(c).GetDownloadUrlForLayer(t.Context(), &ecr.GetDownloadUrlForLayerInput{RepositoryName: aws.String("app"), LayerDigest: aws.String(digest.String())})
	if err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]int{"GET": 200, "HEAD": 401, "DELETE": 401, "PATCH": 401} {
		r, err := http.NewRequestWithContext(t.Context(), method, *out.DownloadUrl, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != want {
			t.Errorf("%s: %d, want %d", method, got.StatusCode, want)
		}
	}
}

// TestCheckMirrors: a prefix is what ECR takes for the beginning of a repository's name, and a host is no more than that.
func TestCheckMirrors(t *testing.T) {
	for mirror, good := range map[string]bool{
		"public.ecr.aws=public":        true,
		"docker.io=h":                  true,
		"localhost:5000=a/b-c__d--e.f": true,
		"docker.io=":                   false,
		"docker.io=/hub":               false,
		"docker.io=hub/":               false,
		"docker.io=Hub":                false,
		"docker.io=a..b":               false,
		"docker.io/library=hub":        false,
		"=hub":                         false,
	} {
		host, prefix, _ := strings.Cut(mirror, "=")
		if err := CheckMirrors(map[string]string{host: prefix}); (err == nil) != good {
			t.Errorf("%s: %v", mirror, err)
		}
	}
}
