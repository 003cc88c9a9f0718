package retention

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecr "github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// world is ECR with a loop, and a clock.
type world struct {
	*ecr.Service
	t     *testing.T
	store *state.Store
	blobs *blobs.Store
	loop  *Loop
	now   time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Now().UTC().Truncate(time.Millisecond), store: statetest.Open(t)}
	now := func() time.Time { return w.now }
	var err error
	if w.blobs, err = blobs.Open(t.TempDir(), blobs.Options{Now: now}); err != nil {
		t.Fatal(err)
	}
	w.Service = ecr.New(w.store, ecr.Options{Account: accounttest.New(now), Blobs: w.blobs})
	w.loop = New(w.store, w.blobs, Options{Now: now, Log: slog.New(slog.DiscardHandler)})
	if _, err := w.CreateRepository(t.Context(), &awsecr.CreateRepositoryInput{RepositoryName: aws.String("app")}); err != nil {
		t.Fatal(err)
	}
	return w
}

// layer uploads a layer and returns its digest.
func (w *world) layer(text string) string {
	w.t.Helper()
	begun, err := w.InitiateLayerUpload(w.t.Context(), &awsecr.InitiateLayerUploadInput{RepositoryName: aws.String("app")})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.UploadLayerPart(w.t.Context(), &awsecr.UploadLayerPartInput{
		RepositoryName: aws.String("app"), UploadId: begun.UploadId, LayerPartBlob: []byte(text), PartFirstByte: aws.Int64(0), PartLastByte: aws.Int64(int64(len(text) - 1)),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	digest := blobs.DigestOf([]byte(text))
	_, err = w.CompleteLayerUpload(w.t.Context(), &awsecr.CompleteLayerUploadInput{RepositoryName: aws.String("app"), UploadId: begun.UploadId, LayerDigests: []string{digest}})
	if err != nil {
		w.t.Fatal(err)
	}
	return digest
}

// image puts an image of layers.
func (w *world) image(tag string, layers ...string) {
	w.t.Helper()
	list := ""
	for _, digest := range layers[1:] {
		list += fmt.Sprintf(`, {"digest": %q, "size": 1}`, digest)
	}
	text := fmt.Sprintf(`{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "annotations": {"tag": %q},
		"config": {"digest": %q, "size": 1}, "layers": [%s]}`, tag, layers[0], list[min(2, len(list)):])
	if _, err := w.PutImage(w.t.Context(), &awsecr.PutImageInput{RepositoryName: aws.String("app"), ImageManifest: &text, ImageTag: &tag}); err != nil {
		w.t.Fatal(err)
	}
}

// after makes a step some time later and compares how many images, layers and blobs are left.
func (w *world) after(d time.Duration, what string, images, layers, files int) {
	w.t.Helper()
	w.now = w.now.Add(d)
	for range 2 { // the second has nothing to do
		if err := w.loop.Step(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	v := w.store.View()
	left := 0
	for range v.Images.All() {
		left++
	}
	if v.Images.Len() != images || v.ImageLayers.Len() != layers {
		w.t.Errorf("%s: there are %d images and %d layers, want %d and %d", what, v.Images.Len(), v.ImageLayers.Len(), images, layers)
	}
	has := 0
	if _, err := w.blobs.Collect(func(string) bool { has++; return true }); err != nil || has != files {
		w.t.Errorf("%s: there are %d blobs, want %d: %v", what, has, files, err)
	}
}

// TestRetention: layers stay while an image has them, and a while before and after; blobs stay while a repository has them.
func TestRetention(t *testing.T) {
	w := newWorld(t)
	shared, one, two := w.layer("shared"), w.layer("one"), w.layer("two")
	w.image("v1", one, shared)
	w.image("v2", two, shared)
	w.layer("of no image")
	w.after(23*time.Hour, "within a day", 2, 4, 6)
	w.after(time.Hour, "after a day", 2, 3, 5)
	_, err := w.BatchDeleteImage(t.Context(), &awsecr.BatchDeleteImageInput{RepositoryName: aws.String("app"), ImageIds: []types.ImageIdentifier{{ImageTag: aws.String("v1")}}})
	if err != nil {
		t.Fatal(err)
	}
	w.after(time.Minute, "just deleted", 1, 3, 4)
	w.after(ecr.UntilRemoved, "a while later", 1, 2, 3)
	w.image("v3", two, shared)
	if _, err := w.DeleteRepository(t.Context(), &awsecr.DeleteRepositoryInput{RepositoryName: aws.String("app"), Force: true}); err != nil {
		t.Fatal(err)
	}
	w.after(0, "without the repository", 0, 0, 0)
}

// TestExpires: a lifecycle policy deletes images when it's put, and then now and again.
func TestExpires(t *testing.T) {
	w := newWorld(t)
	put := func(n int) {
		t.Helper()
		w.image(fmt.Sprintf("v%d", n), w.layer(fmt.Sprintf("config %d", n)))
		w.now = w.now.Add(time.Second)
	}
	for n := range 4 {
		put(n)
	}
	policy := `{"rules": [{"rulePriority": 1, "selection": {"tagStatus": "any", "countType": "imageCountMoreThan", "countNumber": 2}, "action": {"type": "expire"}}]}`
	if _, err := w.PutLifecyclePolicy(t.Context(), &awsecr.PutLifecyclePolicyInput{RepositoryName: aws.String("app"), LifecyclePolicyText: &policy}); err != nil {
		t.Fatal(err)
	}
	w.after(0, "at once", 2, 4, 6)
	for tag, want := range map[string]bool{"v0": false, "v1": false, "v2": true, "v3": true} {
		if is := ecr.Find(w.store.View(), "app", tag) != nil; is != want {
			t.Errorf("%s is there: %v", tag, is)
		}
	}
	if got, err := w.GetLifecyclePolicy(t.Context(), &awsecr.GetLifecyclePolicyInput{RepositoryName: aws.String("app")}); err != nil || got.LastEvaluatedAt == nil {
		t.Errorf("it was evaluated at %v: %v", got, err)
	}
	put(4)
	w.after(time.Minute, "too soon", 3, 5, 8)
	w.after(time.Hour, "again", 2, 3, 5)
}
