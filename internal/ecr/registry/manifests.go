package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/account"
	service "github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/state"
)

// manifest answers with an image's manifest, or describes it.
func (g *Registry) manifest(x *exchange) error {
	if err := g.opts.Allow(x.Context(), "BatchGetImage", x.pulls()); err != nil {
		return err
	}
	i, text, err := g.find(x)
	if err != nil {
		return err
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
	if text == nil {
		if text, err = g.ecr.Manifest(x.Context(), i); err != nil {
			h.Del("Content-Length")
			return err
		}
	}
	x.w.WriteHeader(http.StatusOK)
	x.w.Write(text) //nolint:errcheck // nobody is left to tell if the client is gone
	return nil
}

// find returns an image that is here, or one of another registry, with its manifest, that a rule lets in.
func (g *Registry) find(x *exchange) (i *state.Image, text []byte, err error) {
	v := g.ecr.View()
	i = service.Find(v, x.name, x.rest)
	rule := v.RuleFor(x.name)
	if rule == nil || g.opts.Upstream == nil || g.isCurrent(x, i) {
		if err := g.ecr.Check(x.name); err != nil {
			return nil, nil, err
		}
		if i == nil {
			err = errUnknownImage
		}
		return i, nil, err
	}
	if err := g.mayImport(x); err != nil && i == nil {
		return nil, nil, err
	} else if err != nil {
		return i, nil, nil
	}
	ask := g.opts.Upstream.Manifest
	if i != nil {
		ask = g.opts.Upstream.Refresh
	}
	cached, text, err := ask(x.Context(), rule, x.name, x.rest, func(ctx context.Context) error { return g.admit(ctx, x.name) })
	if err != nil && i != nil && x.Context().Err() == nil {
		g.opts.Failed(fmt.Errorf("%s:%s stays as it is: %w", x.name, x.rest, err))
		return i, nil, nil
	}
	return cached, text, err
}

var errUnknownImage = refuse(http.StatusNotFound, "MANIFEST_UNKNOWN", "Requested image not found")

// checkEvery is how long a tag of another registry counts as known.
const checkEvery = 24 * time.Hour

// isCurrent reports whether an image, or nil, is what a request names, without asking another registry. Digests are of one image for ever.
func (g *Registry) isCurrent(x *exchange, i *state.Image) bool {
	if i == nil || x.id().ImageDigest != nil {
		return i != nil
	}
	t := g.ecr.View().ImageTags.Get(state.InRepository(x.name, x.rest))
	return t == nil || g.ecr.IsFixed(x.name, t) || g.ecr.Since(*t.Checked) < checkEvery
}

// mayImport asks whether a caller may have an image come from another registry, and the repository made if there is none.
func (g *Registry) mayImport(x *exchange) error {
	if err := g.opts.Allow(x.Context(), "BatchImportUpstreamImage", x.pulls()); err != nil {
		return err
	}
	if g.ecr.Check(x.name) == nil {
		return nil
	}
	return g.opts.Allow(x.Context(), "CreateRepository", &ecr.CreateRepositoryInput{RepositoryName: &x.name})
}

// admit makes the repository of an image of another registry, if there is none.
func (g *Registry) admit(ctx context.Context, name string) error {
	if g.ecr.Check(name) == nil {
		return nil
	}
	_, err := g.ecr.CreateRepository(ctx, &ecr.CreateRepositoryInput{RepositoryName: &name})
	if exists := new(types.RepositoryAlreadyExistsException); errors.As(err, &exists) {
		return nil
	}
	return err
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
	account.SortBy(list, func(d descriptor) string { return d.Digest })
	if kind != "" {
		x.w.Header().Set("Oci-Filters-Applied", "artifactType")
	}
	const index = "application/vnd.oci.image.index.v1+json"
	return x.writeJSON(http.StatusOK, index, map[string]any{"schemaVersion": 2, "mediaType": index, "manifests": list})
}
