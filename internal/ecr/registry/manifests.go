package registry

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	service "github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/state"
)

// manifest answers with an image's manifest, or describes it.
func (g *Registry) manifest(x *exchange) error {
	if err := g.allow(x, "BatchGetImage", x.pulls()); err != nil {
		return err
	}
	i := service.Find(g.ecr.View(), x.name, x.rest)
	if i == nil {
		return refuse(http.StatusNotFound, "MANIFEST_UNKNOWN", "Requested image not found")
	}
	h := x.w.Header()
	h.Set("Content-Type", i.MediaType)
	h.Set("Content-Length", strconv.FormatInt(i.Bytes, 10))
	h.Set("Docker-Content-Digest", i.Digest)
	h.Set("Etag", `"`+i.Digest+`"`)
	if x.Method == http.MethodHead {
		x.w.WriteHeader(http.StatusOK)
		return nil
	}
	text, err := g.ecr.Manifest(x.Context(), i)
	if err != nil {
		h.Del("Content-Length")
		return err
	}
	x.w.WriteHeader(http.StatusOK)
	x.w.Write(text) //nolint:errcheck // nobody is left to tell if the client is gone
	return nil
}

// putManifest puts an image under a tag, or under its digest alone.
func (g *Registry) putManifest(x *exchange) error {
	id := x.id()
	in := &ecr.PutImageInput{RepositoryName: &x.name, ImageTag: id.ImageTag, ImageDigest: id.ImageDigest}
	if err := g.allow(x, "PutImage", in); err != nil {
		return err
	}
	text, err := io.ReadAll(http.MaxBytesReader(x.w, x.Body, service.MaxManifest))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return refuse(http.StatusRequestEntityTooLarge, "MANIFEST_INVALID", "the manifest is larger than "+strconv.Itoa(service.MaxManifest)+" bytes")
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "MANIFEST_INVALID", "the manifest could not be read")
	}
	p := service.Pushed{Repository: x.name, Manifest: text, MediaType: x.Header.Get("Content-Type"), Tag: x.rest}
	if id.ImageDigest != nil {
		if p.Tag = ""; x.rest != blobs.DigestOf(text) {
			return blobs.ErrDigest
		}
	}
	i, _, err := g.ecr.Push(x.Context(), p)
	if err != nil {
		return err
	}
	h := x.w.Header()
	h.Set("Location", Prefix+x.name+"/manifests/"+i.Digest)
	h.Set("Docker-Content-Digest", i.Digest)
	h.Set("Content-Length", "0")
	if i.Subject != "" {
		h.Set("Oci-Subject", i.Subject)
	}
	x.w.WriteHeader(http.StatusCreated)
	return nil
}

// deleteManifest deletes an image, or takes a tag from one.
func (g *Registry) deleteManifest(x *exchange) error {
	in := &ecr.BatchDeleteImageInput{RepositoryName: &x.name, ImageIds: []types.ImageIdentifier{x.id()}}
	if err := g.allow(x, "BatchDeleteImage", in); err != nil {
		return err
	}
	out, err := g.ecr.BatchDeleteImage(x.Context(), in)
	if err != nil {
		return err
	}
	if len(out.Failures) > 0 {
		f := out.Failures[0]
		if f.FailureCode == types.ImageFailureCodeImageNotFound {
			return refuse(http.StatusNotFound, "MANIFEST_UNKNOWN", *f.FailureReason)
		}
		return refuse(http.StatusBadRequest, "MANIFEST_INVALID", *f.FailureReason)
	}
	x.w.WriteHeader(http.StatusAccepted)
	return nil
}

// tags lists a repository's tags.
func (g *Registry) tags(x *exchange) error {
	if err := g.allow(x, "ListImages", &ecr.ListImagesInput{RepositoryName: &x.name}); err != nil {
		return err
	}
	all := []string{}
	for t := range g.ecr.View().ImageTagsOf(x.name) {
		all = append(all, t.Tag)
	}
	tags, err := page(x, all)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, "application/json", map[string]any{"name": x.name, "tags": tags})
}

// referrers lists what is about an image.
func (g *Registry) referrers(x *exchange) error {
	if err := g.allow(x, "BatchGetImage", x.pulls()); err != nil {
		return err
	}
	if err := blobs.CheckDigest(x.rest); err != nil {
		return err
	}
	type descriptor struct {
		MediaType    string            `json:"mediaType"`
		Digest       string            `json:"digest"`
		Size         int64             `json:"size"`
		ArtifactType string            `json:"artifactType,omitempty"`
		Annotations  map[string]string `json:"annotations,omitempty"`
	}
	list := []descriptor{}
	kind := x.URL.Query().Get("artifactType")
	for i := range g.ecr.View().Images.By(state.ImagesBySubject, state.InRepository(x.name, x.rest)) {
		if kind == "" || kind == i.Artifact {
			list = append(list, descriptor{i.MediaType, i.Digest, i.Bytes, i.Artifact, i.About})
		}
	}
	slices.SortFunc(list, func(a, b descriptor) int { return strings.Compare(a.Digest, b.Digest) })
	if kind != "" {
		x.w.Header().Set("Oci-Filters-Applied", "artifactType")
	}
	const index = "application/vnd.oci.image.index.v1+json"
	return x.writeJSON(http.StatusOK, index, map[string]any{"schemaVersion": 2, "mediaType": index, "manifests": list})
}
