package ecr

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// partSize is how large the parts of uploads through the API are to be.
const partSize = 10 << 20

// BatchCheckLayerAvailability tells which layers a repository has.
func (s *Service) BatchCheckLayerAvailability(
	_ context.Context, in *ecr.BatchCheckLayerAvailabilityInput,
) (*ecr.BatchCheckLayerAvailabilityOutput, error) {
	v := s.store.View()
	if _, err := s.find(v, in.RegistryId, in.RepositoryName); err != nil {
		return nil, err
	}
	out := &ecr.BatchCheckLayerAvailabilityOutput{Layers: []types.Layer{}, Failures: []types.LayerFailure{}}
	for _, digest := range in.LayerDigests {
		if !validDigest.MatchString(digest) {
			out.Failures = append(out.Failures, types.LayerFailure{
				FailureCode:   types.LayerFailureCodeInvalidLayerDigest,
				FailureReason: aws.String("Invalid request parameters: layer digest is not valid"),
				LayerDigest:   &digest,
			})
			continue
		}
		layer := types.Layer{LayerDigest: &digest, LayerAvailability: types.LayerAvailabilityUnavailable}
		if l := v.ImageLayers.Get(state.InRepository(*in.RepositoryName, digest)); l != nil {
			layer.LayerAvailability = types.LayerAvailabilityAvailable
			layer.LayerSize = &l.Size
		}
		out.Layers = append(out.Layers, layer)
	}
	return out, nil
}

// InitiateLayerUpload begins the upload of a layer.
func (s *Service) InitiateLayerUpload(_ context.Context, in *ecr.InitiateLayerUploadInput) (*ecr.InitiateLayerUploadOutput, error) {
	if _, err := s.find(s.store.View(), in.RegistryId, in.RepositoryName); err != nil {
		return nil, err
	}
	id, err := s.opts.Blobs.Begin(*in.RepositoryName)
	if errors.Is(err, blobs.ErrTooMany) {
		return nil, &types.LimitExceededException{Message: account.Message("Too many uploads to the repository %s are open.", *in.RepositoryName)}
	}
	if err != nil {
		return nil, err
	}
	return &ecr.InitiateLayerUploadOutput{UploadId: &id, PartSize: aws.Int64(partSize)}, nil
}

func (s *Service) noUpload(repository, id string) error {
	return &types.UploadNotFoundException{Message: account.Message(
		"The upload with id '%s' does not exist in the repository with name '%s' in the registry with id '%s'", id, repository, s.opts.ID)}
}

// UploadLayerPart adds bytes to a layer's upload.
func (s *Service) UploadLayerPart(_ context.Context, in *ecr.UploadLayerPartInput) (*ecr.UploadLayerPartOutput, error) {
	if _, err := s.find(s.store.View(), in.RegistryId, in.RepositoryName); err != nil {
		return nil, err
	}
	bad := func(has int64) error {
		return &types.InvalidLayerPartException{
			LastValidByteReceived: aws.Int64(has - 1),
			RegistryId:            &s.opts.ID,
			RepositoryName:        in.RepositoryName,
			UploadId:              in.UploadId,
			Message: account.Message("The part from byte %d to %d has %d bytes, and is due at %d",
				*in.PartFirstByte, *in.PartLastByte, len(in.LayerPartBlob), has),
		}
	}
	has, err := s.opts.Blobs.Size(*in.RepositoryName, *in.UploadId)
	switch {
	case errors.Is(err, blobs.ErrNoUpload):
		return nil, s.noUpload(*in.RepositoryName, *in.UploadId)
	case err != nil:
		return nil, err
	case *in.PartLastByte-*in.PartFirstByte+1 != int64(len(in.LayerPartBlob)):
		return nil, bad(has)
	}
	size, err := s.opts.Blobs.Append(*in.RepositoryName, *in.UploadId, *in.PartFirstByte, bytes.NewReader(in.LayerPartBlob))
	var gap *blobs.OutOfOrder
	switch {
	case errors.As(err, &gap):
		return nil, bad(gap.Size)
	case errors.Is(err, blobs.ErrTooLarge):
		return nil, &types.LimitExceededException{Message: account.Message("A layer can have at most %d bytes.", blobs.MaxBlob)}
	case err != nil:
		return nil, err
	}
	return &ecr.UploadLayerPartOutput{
		LastByteReceived: aws.Int64(size - 1),
		RegistryId:       &s.opts.ID,
		RepositoryName:   in.RepositoryName,
		UploadId:         in.UploadId,
	}, nil
}

// CompleteLayerUpload makes a layer of an upload.
func (s *Service) CompleteLayerUpload(ctx context.Context, in *ecr.CompleteLayerUploadInput) (*ecr.CompleteLayerUploadOutput, error) {
	name, id := *in.RepositoryName, *in.UploadId
	v := s.store.View()
	if _, err := s.find(v, in.RegistryId, in.RepositoryName); err != nil {
		return nil, err
	}
	size, err := s.opts.Blobs.Size(name, id)
	switch {
	case errors.Is(err, blobs.ErrNoUpload):
		return nil, s.noUpload(name, id)
	case err != nil:
		return nil, err
	case size == 0:
		return nil, &types.EmptyUploadException{Message: account.Message("The upload with id '%s' has no parts", id)}
	case len(in.LayerDigests) != 1:
		return nil, badParameter("layerDigests", "Member must have length less than or equal to 1")
	}
	digest := in.LayerDigests[0]
	if v.ImageLayers.Get(state.InRepository(name, digest)) != nil {
		return nil, &types.LayerAlreadyExistsException{Message: account.Message(
			"Layer with digest '%s' already exists in the repository with name '%s' in the registry with id '%s'", digest, name, s.opts.ID)}
	}
	err = s.FinishLayer(ctx, name, id, digest)
	if errors.Is(err, blobs.ErrDigest) || errors.Is(err, blobs.ErrAlgorithm) {
		return nil, &types.InvalidLayerException{Message: account.Message(
			"Layer digest calculated by Amazon ECR does not match the digest '%s' provided", digest)}
	}
	if err != nil {
		return nil, err
	}
	return &ecr.CompleteLayerUploadOutput{LayerDigest: &digest, RegistryId: &s.opts.ID, RepositoryName: &name, UploadId: &id}, nil
}

// FinishLayer makes a repository's layer of an upload with a digest.
func (s *Service) FinishLayer(ctx context.Context, repository, id, digest string) error {
	return s.opts.Blobs.Finish(repository, id, digest, func(size int64) error { return s.addLayer(ctx, repository, digest, size) })
}

// MountLayer gives a repository a layer that another one has.
func (s *Service) MountLayer(ctx context.Context, from, to, digest string) error {
	return s.opts.Blobs.Keep(digest, func(size int64) error {
		if s.store.View().ImageLayers.Get(state.InRepository(from, digest)) == nil {
			return blobs.ErrNoBlob
		}
		return s.addLayer(ctx, to, digest, size)
	})
}

// addLayer puts a layer's row. The blob is there, and stays while it's done.
func (s *Service) addLayer(ctx context.Context, repository, digest string, size int64) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		if _, err := s.find(tx.View, nil, &repository); err != nil {
			return err
		}
		layer := &state.ImageLayer{Repository: repository, Digest: digest, Size: size, Until: new(s.now().Add(untilPushed))}
		if old := tx.ImageLayers.Get(layer.Key()); old == nil || old.Until != nil {
			tx.ImageLayers.Put(layer)
		}
		return nil
	})
}

// OpenLayer opens a layer of a repository.
func (s *Service) OpenLayer(repository, digest string) (*os.File, int64, error) {
	if s.store.View().ImageLayers.Get(state.InRepository(repository, digest)) == nil {
		return nil, 0, blobs.ErrNoBlob
	}
	return s.opts.Blobs.Open(digest)
}

// The parameters of a URL by which a layer can be fetched without a token, and how long one is good.
const (
	expiresParameter   = "X-Pintle-Expires"
	signatureParameter = "X-Pintle-Signature"
	urlLifetime        = time.Hour
)

// GetDownloadUrlForLayer returns a URL by which anybody can fetch a layer for an hour.
func (s *Service) GetDownloadUrlForLayer(
	ctx context.Context, in *ecr.GetDownloadUrlForLayerInput,
) (*ecr.GetDownloadUrlForLayerOutput, error) {
	v := s.store.View()
	if _, err := s.find(v, in.RegistryId, in.RepositoryName); err != nil {
		return nil, err
	}
	name, digest := *in.RepositoryName, *in.LayerDigest
	if v.ImageLayers.Get(state.InRepository(name, digest)) == nil {
		return nil, &types.LayersNotFoundException{Message: account.Message(
			"Layers with digests '[%s]' cannot be found in the repository with name '%s' in the registry with id '%s'", digest, name, s.opts.ID)}
	}
	base := call.From(ctx).Endpoint
	if base == "" {
		base = s.opts.Endpoint
	}
	path := LayerPath(name, digest)
	expires := strconv.FormatInt(s.now().Add(urlLifetime).Unix(), 10)
	query := url.Values{expiresParameter: {expires}, signatureParameter: {s.signature(path, expires)}}
	return &ecr.GetDownloadUrlForLayerOutput{DownloadUrl: aws.String(base + path + "?" + query.Encode()), LayerDigest: &digest}, nil
}

// LayerPath returns a layer's path in the registry's API.
func LayerPath(repository, digest string) string { return "/v2/" + repository + "/blobs/" + digest }

func (s *Service) signature(path, expires string) string {
	return encode(s.opts.MAC("layer\x00" + path + "\x00" + expires))
}

// IsSigned reports whether a URL is one of GetDownloadUrlForLayer's, and not too old.
func (s *Service) IsSigned(u *url.URL) bool {
	query := u.Query()
	expires := query.Get(expiresParameter)
	until, err := strconv.ParseInt(expires, 10, 64)
	return err == nil && s.now().Unix() < until && equal(query.Get(signatureParameter), s.signature(u.Path, expires))
}
