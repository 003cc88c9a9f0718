package lambda

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	ecrtypes "github.com/aws/aws-sdk-go-v2/service/ecr/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/state"
)

// Images is where images are looked up: ECR.
type Images interface {
	BatchGetImage(context.Context, *ecr.BatchGetImageInput, ...func(*ecr.Options)) (*ecr.BatchGetImageOutput, error)
}

// resolve finds out which image a name stands for. A function keeps that one, as on AWS, until it gets another: UpdateFunctionCode. What is in
// other registries is known to nodes alone, and stays what its name says when an environment starts.
func (s *Service) resolve(ctx context.Context, image string) (found, error) {
	path, own := s.opts.OwnImage(image)
	if !own {
		return found{FunctionCode: state.FunctionCode{Image: image, Resolved: image}, Sum: sumOfName(image)}, nil
	}
	repository, id := readImage(path)
	out, err := s.opts.Images.BatchGetImage(ctx, &ecr.BatchGetImageInput{RepositoryName: &repository, ImageIds: []ecrtypes.ImageIdentifier{id}})
	if _, refused := errors.AsType[smithy.APIError](err); refused || err == nil && len(out.Images) == 0 {
		return found{}, invalid("Source image %s does not exist. Provide a valid source image.", image)
	}
	if err != nil {
		return found{}, err
	}
	digest := *out.Images[0].ImageId.ImageDigest
	host, _, _ := strings.Cut(image, "/")
	return found{
		FunctionCode: state.FunctionCode{Image: image, Resolved: host + "/" + repository + "@" + digest},
		Sum:          strings.TrimPrefix(digest, "sha256:"),
	}, nil
}

// readImage reads what follows an image's host: a repository with a tag, a digest or both. Without either it's the tag latest.
func readImage(path string) (repository string, id ecrtypes.ImageIdentifier) {
	name, digest, hasDigest := strings.Cut(path, "@")
	repository, tag, hasTag := strings.Cut(name, ":")
	if hasDigest {
		id.ImageDigest = &digest
	}
	if hasTag || !hasDigest {
		if tag == "" {
			tag = "latest"
		}
		id.ImageTag = aws.String(tag)
	}
	return repository, id
}

// sumOfName returns what stands for the digest of an image that isn't here.
func sumOfName(image string) string {
	if _, digest, has := strings.Cut(image, "@sha256:"); has {
		return digest
	}
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:])
}
