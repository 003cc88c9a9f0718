package lambda

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	ecrtypes "github.com/aws/aws-sdk-go-v2/service/ecr/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/state/statetest"
)

// repository is an ECR with images of one repository, by their tags.
type repository map[string]string

func (r repository) BatchGetImage(_ context.Context, in *ecr.BatchGetImageInput, _ ...func(*ecr.Options)) (*ecr.BatchGetImageOutput, error) {
	if *in.RepositoryName != "team/fn" {
		return nil, &ecrtypes.RepositoryNotFoundException{}
	}
	out := &ecr.BatchGetImageOutput{}
	for tag, digest := range r {
		if id := in.ImageIds[0]; aws.ToString(id.ImageTag) == tag || aws.ToString(id.ImageDigest) == digest {
			out.Images = append(out.Images, ecrtypes.Image{ImageId: &ecrtypes.ImageIdentifier{ImageDigest: &digest}})
		}
	}
	return out, nil
}

// TestFunctionsImageIsResolved: a function has the image that a tag named when it got it, until it gets another.
func TestFunctionsImageIsResolved(t *testing.T) {
	const host = "000000000000.dkr.ecr.us-east-1.amazonaws.com/"
	images := repository{"v1": "sha256:aa", "latest": "sha256:bb"}
	s := newService(t, statetest.Open(t), t.TempDir(), &fake{answer: succeed})
	s.opts.Images = images
	of := func(image string) func(*lambda.CreateFunctionInput) {
		return func(in *lambda.CreateFunctionInput) {
			in.Runtime, in.Handler, in.PackageType = "", nil, types.PackageTypeImage
			in.Code = &types.FunctionCode{ImageUri: &image}
		}
	}
	check := func(name, sum, resolved string) {
		t.Helper()
		got, err := s.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: &name})
		if err != nil || *got.Configuration.CodeSha256 != sum || *got.Code.ResolvedImageUri != resolved {
			t.Errorf("%s: %v %v, %v", name, aws.ToString(got.Configuration.CodeSha256), got.Code, err)
		}
	}
	make1(t, s, "tag", of(host+"team/fn:v1"))
	make1(t, s, "none", of(host+"team/fn"))
	make1(t, s, "digest", of(host+"team/fn@sha256:aa"))
	make1(t, s, "other", of("registry.example/fn@sha256:cc"))
	images["v1"] = "sha256:dd"
	check("tag", "aa", host+"team/fn@sha256:aa")
	check("none", "bb", host+"team/fn@sha256:bb")
	check("digest", "aa", host+"team/fn@sha256:aa")
	check("other", "cc", "registry.example/fn@sha256:cc")
	update := func(image string) error {
		_, err := s.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: aws.String("tag"), ImageUri: aws.String(host + image)})
		return err
	}
	if err := update("team/fn:v1"); err != nil {
		t.Error(err)
	}
	check("tag", "dd", host+"team/fn@sha256:dd")
	for _, image := range []string{"team/fn:v9", "nobody/fn:v1"} {
		if refused, is := errors.AsType[smithy.APIError](update(image)); !is || refused.ErrorCode() != "InvalidParameterValueException" {
			t.Errorf("%s: %v", image, refused)
		}
	}
	check("tag", "dd", host+"team/fn@sha256:dd")
}
