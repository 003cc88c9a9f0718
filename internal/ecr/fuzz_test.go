package ecr

import (
	"testing"

	"github.com/pintle/pintle/internal/ecr/blobs"
)

// FuzzManifest: whatever a manifest says, what it refers to has digests that can be blobs', and nothing is both an image and a list.
func FuzzManifest(f *testing.F) {
	const config = `"config": {"mediaType": "c", "digest": "sha256:0000000000000000000000000000000000000000000000000000000000000000", "size": 1}`
	f.Add([]byte(`{"schemaVersion": 2, `+config+`, "layers": [{"digest": "sha256:../..", "size": -1}]}`), ociManifest)
	f.Add([]byte(`{"schemaVersion": 2, "mediaType": "`+dockerManifest+`", `+config+`, "layers": [{"urls": ["http://x"]}], "subject": {"digest": "x"}}`), "")
	f.Add([]byte(`{"schemaVersion": 2, "manifests": [{"digest": "x"}], `+config+`}`), ociIndex+"; charset=utf-8")
	f.Fuzz(func(t *testing.T, text []byte, mediaType string) {
		i, err := Parse(text, mediaType)
		if err != nil {
			return
		}
		if len(i.Layers) > 0 && len(i.Images) > 0 || i.Digest != blobs.DigestOf(text) || i.MediaType == "" {
			t.Errorf("%s is %+v", text, i)
		}
		for _, digest := range append(i.Layers, i.Images...) {
			if blobs.CheckDigest(digest) != nil {
				t.Errorf("%s refers to %q", text, digest)
			}
		}
	})
}
