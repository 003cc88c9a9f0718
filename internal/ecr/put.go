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
	"github.com/pintle/pintle/internal/ecr/lifecycle"
	"github.com/pintle/pintle/internal/state"
)

// The quotas of a repository: https://docs.aws.amazon.com/AmazonECR/latest/userguide/service-quotas.html
const (
	maxImages = 100_000
	maxTags   = 1000 // of one image
)

// How long a layer stays that no image refers to: of an image that is still to come, and of one that is gone.
const (
	untilPushed = 24 * time.Hour
	// UntilRemoved lets a push go on that has found the layers of an image that was deleted meanwhile.
	UntilRemoved = 10 * time.Minute
)

var validTag = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)

// Pushed is an image that is to be put into a repository.
type Pushed struct {
	Repository string
	Manifest   []byte
	MediaType  string // as it was sent with; "" if the manifest says it
	Tag        string // "" for none
	// IsCached says that it comes from another registry: images of a list come when they are asked for, and the tag follows that registry's.
	IsCached bool
}

// Push puts an image into a repository, where its layers and the images of a list must be. It reports whether there was none with the tag and
// digest before.
func (s *Service) Push(ctx context.Context, p Pushed) (i *state.Image, isNew bool, err error) {
	if p.Tag != "" && !validTag.MatchString(p.Tag) {
		return nil, false, badParameter("imageTag", "Member must satisfy regular expression pattern: %s", strings.Trim(validTag.String(), "^$"))
	}
	if len(p.Manifest) > MaxManifest {
		return nil, false, malformed("The manifest has more than %d bytes", MaxManifest)
	}
	if i, err = Parse(p.Manifest, p.MediaType); err != nil {
		return nil, false, err
	}
	i.Repository = p.Repository
	i.Pushed = s.now()
	if _, err := s.find(s.store.View(), nil, &p.Repository); err != nil {
		return nil, false, err // before anything is written
	}
	err = s.opts.Blobs.Put(p.Manifest, func() error {
		return s.store.Update(ctx, func(tx *state.Tx) error {
			isNew, err = s.put(tx, i, p)
			if isNew && !p.IsCached { // of those AWS tells in events of another kind
				tx.EmitImage("PUSH", i, p.Tag, i.Pushed)
			}
			return err
		})
	})
	return i, isNew, err
}

// put puts an image's row and tag.
func (s *Service) put(tx *state.Tx, i *state.Image, p Pushed) (isNew bool, err error) {
	tag := p.Tag
	r, err := s.find(tx.View, nil, &i.Repository)
	if err != nil {
		return false, err
	}
	if err := s.checkParts(tx.View, i); err != nil && !(p.IsCached && i.IsList()) {
		return false, err
	}
	old := tx.Images.Get(i.Key())
	if old == nil {
		if err := s.checkRoom(tx.View, i); err != nil {
			return false, err
		}
		tx.PutImage(i)
	}
	if tag == "" {
		return old == nil, nil
	}
	key := state.InRepository(i.Repository, tag)
	row := &state.ImageTag{Repository: i.Repository, Tag: tag, Digest: i.Digest}
	before := tx.ImageTags.Get(key)
	if p.IsCached {
		if before != nil && (before.Checked == nil || before.Digest != i.Digest && isImmutable(r, tag)) {
			return old == nil, nil // it was pushed meanwhile, or must not change
		}
		row.Checked = new(s.now())
		tx.ImageTags.Put(row)
		return true, nil
	}
	switch {
	case before != nil && before.Digest == i.Digest:
		return false, nil
	case before != nil && isImmutable(r, tag):
		return false, &types.ImageTagAlreadyExistsException{Message: account.Message(
			"The image tag '%s' already exists in the '%s' repository and cannot be overwritten because the tag is immutable.", tag, r.Name)}
	case len(tx.TagsOf(i)) >= maxTags:
		return false, &types.LimitExceededException{Message: account.Message("An image can have at most %d tags.", maxTags)}
	}
	tx.ImageTags.Put(row)
	return true, nil
}

func (s *Service) checkRoom(v *state.View, i *state.Image) error {
	n := 0
	for range v.ImagesOf(i.Repository) {
		if n++; n >= maxImages {
			return &types.LimitExceededException{Message: account.Message("The repository %s has %d images, the maximum.", i.Repository, maxImages)}
		}
	}
	return nil
}

// checkParts checks that the repository has an image's layers, or the images of a list.
func (s *Service) checkParts(v *state.View, i *state.Image) error {
	missing := slices.DeleteFunc(slices.Clone(i.Layers), func(digest string) bool {
		return v.ImageLayers.Get(state.InRepository(i.Repository, digest)) != nil
	})
	if len(missing) > 0 {
		return &types.LayersNotFoundException{Message: account.Message(
			"Layers with digests '[%s]' cannot be found in the repository with name '%s' in the registry with id '%s'",
			strings.Join(missing, ", "), i.Repository, s.opts.ID)}
	}
	missing = slices.DeleteFunc(slices.Clone(i.Images), func(digest string) bool {
		return v.Images.Get(state.InRepository(i.Repository, digest)) != nil
	})
	if len(missing) > 0 {
		return &types.ReferencedImagesNotFoundException{Message: account.Message(
			"Images with digests '[%s]' required for pushing image into repository with name '%s' in the registry with id '%s' do not exist",
			strings.Join(missing, ", "), i.Repository, s.opts.ID)}
	}
	return nil
}

// IsFixed reports whether a repository's tag can't change any more, whatever another registry has under it by now.
func (s *Service) IsFixed(repository string, t *state.ImageTag) bool {
	r := s.store.View().Repositories.Get(repository)
	return t.Checked == nil || r != nil && isImmutable(r, t.Tag)
}

// isImmutable reports whether a repository's tag can't be given to another image.
func isImmutable(r *state.Repository, tag string) bool {
	excluded := slices.ContainsFunc(r.Exclusions, func(f types.ImageTagMutabilityExclusionFilter) bool {
		return lifecycle.Matches(aws.ToString(f.Filter), tag)
	})
	switch r.Mutability {
	case types.ImageTagMutabilityImmutable:
		return true
	case types.ImageTagMutabilityImmutableWithExclusion:
		return !excluded
	case types.ImageTagMutabilityMutableWithExclusion:
		return excluded
	}
	return false
}

// PutImage puts an image into a repository, whose layers were uploaded before.
func (s *Service) PutImage(ctx context.Context, in *ecr.PutImageInput) (*ecr.PutImageOutput, error) {
	if _, err := s.find(s.store.View(), in.RegistryId, in.RepositoryName); err != nil {
		return nil, err
	}
	text := []byte(*in.ImageManifest)
	if in.ImageDigest != nil && *in.ImageDigest != blobs.DigestOf(text) {
		return nil, &types.ImageDigestDoesNotMatchException{Message: account.Message(
			"Image digest calculated by Amazon ECR does not match the digest '%s' provided", *in.ImageDigest)}
	}
	tag := aws.ToString(in.ImageTag)
	i, isNew, err := s.Push(ctx, Pushed{
		Repository: *in.RepositoryName,
		Manifest:   text,
		MediaType:  aws.ToString(in.ImageManifestMediaType),
		Tag:        tag,
	})
	if bad := new(ErrManifest); errors.As(err, &bad) {
		return nil, badParameter("imageManifest", "%s", bad.What)
	}
	if err != nil {
		return nil, err
	}
	if !isNew {
		return nil, &types.ImageAlreadyExistsException{Message: account.Message(
			"Image with digest '%s' and tag '%s' already exists in the repository with name '%s' in registry with id '%s'",
			i.Digest, cmp.Or(tag, "null"), i.Repository, s.opts.ID)}
	}
	return &ecr.PutImageOutput{Image: &types.Image{
		ImageId:                s.idOf(i.Digest, tag),
		ImageManifest:          in.ImageManifest,
		ImageManifestMediaType: &i.MediaType,
		RegistryId:             &s.opts.ID,
		RepositoryName:         &i.Repository,
	}}, nil
}

// idOf returns an image's id; tag is "" for none.
func (s *Service) idOf(digest, tag string) *types.ImageIdentifier {
	id := &types.ImageIdentifier{ImageDigest: &digest}
	if tag != "" {
		id.ImageTag = &tag
	}
	return id
}
