package ecr

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/state/statetest"
)

// TestImageEvents: the bus hears of pushes and deletions that change something, with the members that AWS documents.
func TestImageEvents(t *testing.T) {
	w := newWorld(t)
	b, err := blobs.Open(t.TempDir(), blobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.opts.Blobs = b
	told := statetest.Listen(t, w.store, "aws.ecr")
	w.create("app")
	const index = "application/vnd.oci.image.index.v1+json"
	manifest := `{"schemaVersion":2,"mediaType":"` + index + `","manifests":[]}`
	push := func(tag string) string {
		in := &ecr.PutImageInput{RepositoryName: aws.String("app"), ImageManifest: &manifest, ImageTag: aws.String(tag)}
		return *do(w, w.PutImage, in).Image.ImageId.ImageDigest
	}
	digest := push("a")
	push("b")
	refused(w, w.PutImage, &ecr.PutImageInput{RepositoryName: aws.String("app"), ImageManifest: &manifest, ImageTag: aws.String("b")})
	for range 2 { // the second time nothing is there
		do(w, w.BatchDeleteImage, &ecr.BatchDeleteImageInput{RepositoryName: aws.String("app"), ImageIds: []types.ImageIdentifier{
			{ImageTag: aws.String("a")}, {ImageDigest: &digest},
		}})
	}
	var got, want []string
	for _, e := range *told {
		var detail map[string]string
		if err := json.Unmarshal(e.Detail.(json.RawMessage), &detail); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.DetailType, e.Resources, e.Time.Equal(w.now.Truncate(time.Millisecond)), detail))
	}
	for _, one := range [][2]string{{"PUSH", "a"}, {"PUSH", "b"}, {"DELETE", "a"}, {"DELETE", "b"}} {
		want = append(want, fmt.Sprint("ECR Image Action", []string(nil), true, map[string]string{
			"result": "SUCCESS", "repository-name": "app", "image-digest": digest, "action-type": one[0], "image-tag": one[1],
			"manifest-media-type": index,
		}))
	}
	if !slices.Equal(got, want) {
		t.Errorf("told\n%s, want\n%s", got, want)
	}
}
