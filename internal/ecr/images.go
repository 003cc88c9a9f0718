package ecr

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/state"
)

// Find returns a repository's image by a tag or a digest, or nil.
func Find(v *state.View, repository, reference string) *state.Image {
	if strings.Contains(reference, ":") {
		return v.Images.Get(state.InRepository(repository, reference))
	}
	t := v.ImageTags.Get(state.InRepository(repository, reference))
	if t == nil {
		return nil
	}
	return v.Images.Get(state.InRepository(repository, t.Digest))
}

// Manifest returns an image's manifest, and notes that it was pulled.
func (s *Service) Manifest(ctx context.Context, i *state.Image) ([]byte, error) {
	text, err := s.opts.Blobs.Read(i.Digest, i.Bytes)
	if err == nil {
		s.notePull(ctx, i)
	}
	return text, err
}

// notePull notes when an image was pulled, once a day: a pull is a read, and must not fail because the disk can't be written.
func (s *Service) notePull(ctx context.Context, i *state.Image) {
	now := s.now()
	if i.Pulled != nil && now.Sub(*i.Pulled) < 24*time.Hour {
		return
	}
	s.store.Update(ctx, func(tx *state.Tx) error { //nolint:errcheck // as above
		if is := tx.Images.Get(i.Key()); is != nil {
			pulled := *is
			pulled.Pulled = &now
			tx.Images.Put(&pulled)
		}
		return nil
	})
}

var validDigest = regexp.MustCompile(`^[a-zA-Z0-9-_+.]+:[a-fA-F0-9]+$`)

// failed returns what says that something can't be done with an image.
func failed(id types.ImageIdentifier, code types.ImageFailureCode, reason string) types.ImageFailure {
	return types.ImageFailure{FailureCode: code, FailureReason: &reason, ImageId: &id}
}

// meant returns the image that an id means, or why there is none.
func meant(v *state.View, repository string, id types.ImageIdentifier) (*state.Image, *types.ImageFailure) {
	var why types.ImageFailure
	tag, digest := aws.ToString(id.ImageTag), aws.ToString(id.ImageDigest)
	switch {
	case tag == "" && digest == "":
		why = failed(id, types.ImageFailureCodeMissingDigestAndTag, "Invalid request parameters: both tag and digest cannot be null")
		return nil, &why
	case digest != "" && !validDigest.MatchString(digest):
		why = failed(id, types.ImageFailureCodeInvalidImageDigest,
			"Invalid request parameters: image digest should satisfy the regex '"+strings.Trim(validDigest.String(), "^$")+"'")
		return nil, &why
	}
	i := Find(v, repository, cmp.Or(tag, digest))
	switch {
	case i == nil:
		why = failed(id, types.ImageFailureCodeImageNotFound, "Requested image not found")
		return nil, &why
	case digest != "" && i.Digest != digest:
		why = failed(id, types.ImageFailureCodeImageTagDoesNotMatchDigest, "The image tag doesn't match the image digest")
		return nil, &why
	}
	return i, nil
}

// BatchGetImage returns images' manifests.
func (s *Service) BatchGetImage(ctx context.Context, in *ecr.BatchGetImageInput) (*ecr.BatchGetImageOutput, error) {
	v := s.store.View()
	if _, err := s.find(v, in.RegistryId, in.RepositoryName); err != nil {
		return nil, err
	}
	out := &ecr.BatchGetImageOutput{Images: []types.Image{}, Failures: []types.ImageFailure{}}
	for _, id := range in.ImageIds {
		i, why := meant(v, *in.RepositoryName, id)
		if why == nil && len(in.AcceptedMediaTypes) > 0 && !slices.Contains(in.AcceptedMediaTypes, i.MediaType) {
			why = new(failed(id, types.ImageFailureCodeImageNotFound, "The image's media type, "+i.MediaType+", is not accepted"))
		}
		if why != nil {
			out.Failures = append(out.Failures, *why)
			continue
		}
		text, err := s.Manifest(ctx, i)
		if errors.Is(err, blobs.ErrNoBlob) {
			out.Failures = append(out.Failures, failed(id, types.ImageFailureCodeImageInaccessible, "The image's manifest is not on the disk any more"))
			continue
		}
		if err != nil {
			return nil, err
		}
		out.Images = append(out.Images, types.Image{
			ImageId:                s.idOf(i.Digest, aws.ToString(id.ImageTag)),
			ImageManifest:          aws.String(string(text)),
			ImageManifestMediaType: &i.MediaType,
			RegistryId:             &s.opts.ID,
			RepositoryName:         in.RepositoryName,
		})
	}
	return out, nil
}

// BatchDeleteImage takes tags from images, which go with the last of them, and deletes images by their digests.
func (s *Service) BatchDeleteImage(ctx context.Context, in *ecr.BatchDeleteImageInput) (*ecr.BatchDeleteImageOutput, error) {
	out := &ecr.BatchDeleteImageOutput{ImageIds: []types.ImageIdentifier{}, Failures: []types.ImageFailure{}}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if _, err := s.find(tx.View, in.RegistryId, in.RepositoryName); err != nil {
			return err
		}
		for _, id := range in.ImageIds {
			if done, why := s.deleteImage(tx, *in.RepositoryName, id); why != nil {
				out.Failures = append(out.Failures, *why)
			} else {
				out.ImageIds = append(out.ImageIds, done...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// deleteImage does what one id of BatchDeleteImage says.
func (s *Service) deleteImage(tx *state.Tx, repository string, id types.ImageIdentifier) ([]types.ImageIdentifier, *types.ImageFailure) {
	i, why := meant(tx.View, repository, id)
	if why != nil {
		return nil, why
	}
	tags := tx.TagsOf(i)
	if id.ImageTag != nil && len(tags) > 1 {
		tx.ImageTags.Delete(state.InRepository(repository, *id.ImageTag))
		return s.deleted(tx, i, *id.ImageTag), nil
	}
	if lists := listsWith(tx.View, i); len(lists) > 0 {
		return nil, new(failed(id, types.ImageFailureCodeImageReferencedByManifestList,
			"Requested image referenced by manifest list: ["+strings.Join(lists, ", ")+"]"))
	}
	tx.DeleteImage(i, s.now().Add(UntilRemoved))
	if len(tags) == 0 {
		tags = []string{""}
	}
	return s.deleted(tx, i, tags...), nil
}

// deleted tells the bus of what was deleted, and returns its ids.
func (s *Service) deleted(tx *state.Tx, i *state.Image, tags ...string) (ids []types.ImageIdentifier) {
	for _, tag := range tags {
		tx.EmitImage("DELETE", i, tag, s.now())
		ids = append(ids, *s.idOf(i.Digest, tag))
	}
	return ids
}

// listsWith returns the digests of the lists that have an image.
func listsWith(v *state.View, i *state.Image) (lists []string) {
	for l := range v.ImagesOf(i.Repository) {
		if slices.Contains(l.Images, i.Digest) {
			lists = append(lists, l.Digest)
		}
	}
	return lists
}

// wanted reports whether an image with tags is one of those that a filter selects.
func wanted(status types.TagStatus, tags []string) bool {
	switch status {
	case types.TagStatusTagged:
		return len(tags) > 0
	case types.TagStatusUntagged:
		return len(tags) == 0
	}
	return true
}

// noArchive refuses to look for images of a storage class that isn't there.
func noArchive(status types.ImageStatusFilter) error {
	switch status {
	case "", types.ImageStatusFilterActive, types.ImageStatusFilterAny:
		return nil
	}
	return badParameter("filter.imageStatus", "Pintle archives no images: only ACTIVE and ANY can be asked for")
}

// ListImages lists images' ids: one for each tag, and one for an image without tags.
func (s *Service) ListImages(_ context.Context, in *ecr.ListImagesInput) (*ecr.ListImagesOutput, error) {
	v := s.store.View()
	if _, err := s.find(v, in.RegistryId, in.RepositoryName); err != nil {
		return nil, err
	}
	filter := types.ListImagesFilter{}
	if in.Filter != nil {
		filter = *in.Filter
	}
	if err := noArchive(filter.ImageStatus); err != nil {
		return nil, err
	}
	ids := []types.ImageIdentifier{}
	for i := range v.ImagesOf(*in.RepositoryName) {
		tags := v.TagsOf(i)
		if !wanted(filter.TagStatus, tags) {
			continue
		}
		if len(tags) == 0 {
			tags = []string{""}
		}
		for _, tag := range tags {
			ids = append(ids, *s.idOf(i.Digest, tag))
		}
	}
	list := listing("ListImages "+*in.RepositoryName+" "+string(filter.TagStatus), 1000)
	page, next, err := account.Sorted(list, ids, in.MaxResults, in.NextToken, func(id types.ImageIdentifier) string {
		return *id.ImageDigest + " " + aws.ToString(id.ImageTag)
	})
	if err != nil {
		return nil, err
	}
	return &ecr.ListImagesOutput{ImageIds: page, NextToken: next}, nil
}

// DescribeImages tells of images: those that are named, or all.
func (s *Service) DescribeImages(_ context.Context, in *ecr.DescribeImagesInput) (*ecr.DescribeImagesOutput, error) {
	v := s.store.View()
	if _, err := s.find(v, in.RegistryId, in.RepositoryName); err != nil {
		return nil, err
	}
	filter := types.DescribeImagesFilter{}
	if in.Filter != nil {
		filter = *in.Filter
	}
	if err := noArchive(filter.ImageStatus); err != nil {
		return nil, err
	}
	out := &ecr.DescribeImagesOutput{ImageDetails: []types.ImageDetail{}}
	if len(in.ImageIds) > 0 {
		for _, id := range in.ImageIds {
			i, why := meant(v, *in.RepositoryName, id)
			if why != nil {
				return nil, s.noImage(*in.RepositoryName, id)
			}
			out.ImageDetails = append(out.ImageDetails, s.detail(v, i))
		}
		return out, nil
	}
	all := slices.Collect(v.ImagesOf(*in.RepositoryName))
	all = slices.DeleteFunc(all, func(i *state.Image) bool { return !wanted(filter.TagStatus, v.TagsOf(i)) })
	list := listing("DescribeImages "+*in.RepositoryName+" "+string(filter.TagStatus), 1000)
	page, next, err := account.Sorted(list, all, in.MaxResults, in.NextToken, (*state.Image).Key)
	if err != nil {
		return nil, err
	}
	for _, i := range page {
		out.ImageDetails = append(out.ImageDetails, s.detail(v, i))
	}
	out.NextToken = next
	return out, nil
}

// noImage is the error for an image that isn't there.
func (s *Service) noImage(repository string, id types.ImageIdentifier) error {
	shown := func(text *string) string { return cmp.Or(aws.ToString(text), "null") }
	return &types.ImageNotFoundException{Message: account.Message(
		"The image with imageId {imageDigest:'%s', imageTag:'%s'} does not exist within the repository with name '%s' in the registry with id '%s'",
		shown(id.ImageDigest), shown(id.ImageTag), repository, s.opts.ID)}
}

func (s *Service) detail(v *state.View, i *state.Image) types.ImageDetail {
	d := types.ImageDetail{
		ImageDigest:            &i.Digest,
		ImageManifestMediaType: &i.MediaType,
		ImagePushedAt:          &i.Pushed,
		ImageTags:              v.TagsOf(i),
		LastRecordedPullTime:   i.Pulled,
		RegistryId:             &s.opts.ID,
		RepositoryName:         &i.Repository,
	}
	if i.Artifact != "" {
		d.ArtifactMediaType = &i.Artifact
	}
	if !i.IsList() {
		d.ImageSizeInBytes = &i.Size
	}
	if i.Subject != "" {
		d.SubjectManifestDigest = &i.Subject
	}
	return d
}
