package ecr

import (
	"encoding/json"
	"fmt"
	"mime"
	"slices"

	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/state"
)

// The media types of manifests.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	ociManifest    = "application/vnd.oci.image.manifest.v1+json"
	ociIndex       = "application/vnd.oci.image.index.v1+json"
)

// MaxManifest is the most bytes of a manifest: API_PutImage.
const MaxManifest = 4 << 20

// maxParts is the most layers of an image, and the most images of a list. ECR has 4,200 parts of layers; registries' clients stay far below.
const maxParts = 4200

// What is kept in memory of each image of a repository, which may have a hundred thousand: the most bytes of the annotations of one that is about
// another, and of a media type (RFC 6838, 4.2).
const (
	maxAbout = 16 << 10
	maxType  = 255
)

// descriptor refers to a blob or a manifest.
type descriptor struct {
	MediaType string   `json:"mediaType"`
	Digest    string   `json:"digest"`
	Size      int64    `json:"size"`
	URLs      []string `json:"urls"` // where else a layer is, which then needn't be here
}

// manifest is what is read of an image's manifest, or of a list of images.
type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	ArtifactType  string            `json:"artifactType"`
	Config        *descriptor       `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Manifests     []descriptor      `json:"manifests"`
	Subject       *descriptor       `json:"subject"`
	Annotations   map[string]string `json:"annotations"`
}

// ErrManifest is what is wrong with a manifest.
type ErrManifest struct{ What string }

func (e *ErrManifest) Error() string { return e.What }

func malformed(format string, args ...any) error { return &ErrManifest{fmt.Sprintf(format, args...)} }

// Parse returns what a manifest says of an image. The media type is the one that it was sent with, or "".
func Parse(text []byte, mediaType string) (*state.Image, error) {
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, malformed("Invalid JSON syntax")
	}
	if parsed, _, err := mime.ParseMediaType(mediaType); err == nil {
		mediaType = parsed
	}
	switch {
	case mediaType == "":
		mediaType = m.MediaType
	case m.MediaType != "" && m.MediaType != mediaType:
		return nil, malformed("The media type %s isn't that in the manifest, %s", mediaType, m.MediaType)
	}
	i := &state.Image{Digest: blobs.DigestOf(text), MediaType: mediaType, Bytes: int64(len(text)), Size: int64(len(text)), Artifact: m.ArtifactType}
	if m.SchemaVersion != 2 {
		return nil, malformed("schemaVersion isn't 2")
	}
	if m.Subject != nil {
		if err := m.Subject.check(); err != nil {
			return nil, err
		}
		i.Subject = m.Subject.Digest
		i.About = m.Annotations
	}
	if err := checkAbout(i); err != nil {
		return nil, err
	}
	switch mediaType {
	case dockerManifest, ociManifest:
		return i, m.readImage(i)
	case dockerList, ociIndex:
		return i, m.readList(i)
	case "":
		return nil, malformed("image manifest mediatype not provided in manifest or parameter")
	}
	return nil, malformed("The media type %s isn't one of %s, %s, %s and %s", mediaType, dockerManifest, dockerList, ociManifest, ociIndex)
}

func checkAbout(i *state.Image) error {
	size := 0
	for name, value := range i.About {
		size += len(name) + len(value)
	}
	switch {
	case size > maxAbout:
		return malformed("The annotations of what is about another image have %d bytes, more than %d", size, maxAbout)
	case len(i.Artifact) > maxType:
		return malformed("artifactType has more than %d characters", maxType)
	}
	return nil
}

func (m *manifest) readImage(i *state.Image) error {
	if m.Config == nil || len(m.Manifests) > 0 {
		return malformed("An image's manifest has a config, and no manifests")
	}
	if err := checkParts(len(m.Layers)); err != nil {
		return err
	}
	if i.Artifact == "" {
		i.Artifact = m.Config.MediaType
	}
	for _, d := range append([]descriptor{*m.Config}, m.Layers...) {
		if err := d.check(); err != nil {
			return err
		}
		i.Size += d.Size
		if len(d.URLs) == 0 && !slices.Contains(i.Layers, d.Digest) {
			i.Layers = append(i.Layers, d.Digest)
		}
	}
	return nil
}

func (m *manifest) readList(i *state.Image) error {
	if m.Config != nil || len(m.Layers) > 0 {
		return malformed("A list of images has neither config nor layers")
	}
	for _, d := range m.Manifests {
		if err := d.check(); err != nil {
			return err
		}
		i.Images = append(i.Images, d.Digest)
	}
	return checkParts(len(m.Manifests))
}

func (d descriptor) check() error {
	if blobs.CheckDigest(d.Digest) != nil || d.Size < 0 || d.Size > blobs.MaxBlob || len(d.MediaType) > maxType {
		return malformed("The digest %q with the size %d isn't one of sha256 with a size and a media type", d.Digest, d.Size)
	}
	return nil
}

func checkParts(n int) error {
	if n > maxParts {
		return malformed("There are %d layers or images, more than %d", n, maxParts)
	}
	return nil
}
