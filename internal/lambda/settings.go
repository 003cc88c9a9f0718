package lambda

import (
	"cmp"
	"context"
	"maps"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/lambda/environments"
	"github.com/pintle/pintle/internal/state"
)

// MaxConcurrency is how many invocations of an account's functions may run at a time, and minUnreserved how many of them can't be reserved:
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-concurrency.html
const (
	MaxConcurrency = 1000
	minUnreserved  = 100
)

func policyTooLong() error {
	return account.Refuse("PolicyLengthExceededException", "The final policy size is bigger than the limit (%d).", maxPolicy)
}

// checkOwnTags checks the tags that mean something here.
func checkOwnTags(tags map[string]string) error {
	if text, given := tags[environments.TagGPU]; given {
		if n, err := strconv.Atoi(text); err != nil || n < 1 {
			return invalid("Tags: %s is the number of GPUs of each execution environment, not %q.", environments.TagGPU, text)
		}
	}
	return nil
}

// PutFunctionConcurrency reserves a part of the account's concurrency, which is also the most that the function gets.
func (s *Service) PutFunctionConcurrency(
	ctx context.Context, in *lambda.PutFunctionConcurrencyInput,
) (*lambda.PutFunctionConcurrencyOutput, error) {
	if _, qualifier, err := s.target(in.FunctionName, nil); err != nil || qualifier != "" {
		return nil, cmp.Or(err, invalid("This operation is permitted on Lambda functions only. Aliases and versions do not support this operation. "+
			"Please specify either a function name or an unqualified function ARN."))
	}
	_, err := s.update(ctx, in.FunctionName, func(tx *state.Tx, f *state.Function, _ *state.FunctionVersion) error {
		left := int32(MaxConcurrency)
		for other := range tx.Functions.All() {
			if other.Name != f.Name {
				left -= aws.ToInt32(other.Concurrency)
			}
		}
		if left-*in.ReservedConcurrentExecutions < minUnreserved {
			return invalid("Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its minimum "+
				"value of [%d].", minUnreserved)
		}
		f.Concurrency = in.ReservedConcurrentExecutions
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &lambda.PutFunctionConcurrencyOutput{ReservedConcurrentExecutions: in.ReservedConcurrentExecutions}, nil
}

// GetFunctionConcurrency returns what is reserved.
func (s *Service) GetFunctionConcurrency(
	_ context.Context, in *lambda.GetFunctionConcurrencyInput,
) (*lambda.GetFunctionConcurrencyOutput, error) {
	v, row, _, err := s.read1(in.FunctionName, nil)
	if err != nil {
		return nil, err
	}
	return &lambda.GetFunctionConcurrencyOutput{ReservedConcurrentExecutions: v.Functions.Get(*row.FunctionName).Concurrency}, nil
}

// DeleteFunctionConcurrency gives back what is reserved.
func (s *Service) DeleteFunctionConcurrency(
	ctx context.Context, in *lambda.DeleteFunctionConcurrencyInput,
) (*lambda.DeleteFunctionConcurrencyOutput, error) {
	_, err := s.update(ctx, in.FunctionName, func(_ *state.Tx, f *state.Function, _ *state.FunctionVersion) error {
		f.Concurrency = nil
		return nil
	})
	return &lambda.DeleteFunctionConcurrencyOutput{}, err
}

// GetFunctionCodeSigningConfig tells that a function has no code signing, which Terraform asks after each function.
func (s *Service) GetFunctionCodeSigningConfig(
	_ context.Context, in *lambda.GetFunctionCodeSigningConfigInput,
) (*lambda.GetFunctionCodeSigningConfigOutput, error) {
	if _, _, _, err := s.read1(in.FunctionName, nil); err != nil {
		return nil, err
	}
	return &lambda.GetFunctionCodeSigningConfigOutput{}, nil
}

func noTagsOfVersions() error {
	return invalid("Tags on function aliases and versions are not supported. Please specify a function ARN.")
}

// changeTags changes the tags of a function or an event source mapping.
func (s *Service) changeTags(ctx context.Context, arn *string, change func(map[string]string)) error {
	if id, is := s.opts.ResourceOf("lambda", "event-source-mapping:", aws.ToString(arn)); is {
		return s.store.Update(ctx, func(tx *state.Tx) error {
			old := tx.EventSources.Get(id)
			if old == nil {
				return notFound("The resource you requested does not exist.")
			}
			row := *old
			row.Tags = changed(old.Tags, change)
			tx.EventSources.Put(&row)
			return checkTags(row.Tags)
		})
	}
	if _, is := s.opts.ResourceOf("lambda", "function:", aws.ToString(arn)); !is {
		return invalid("Resource: %s is the ARN of no function and of no event source mapping of this account.", aws.ToString(arn))
	}
	if strings.Count(*arn, ":") > 6 {
		return noTagsOfVersions()
	}
	_, err := s.update(ctx, arn, func(_ *state.Tx, f *state.Function, _ *state.FunctionVersion) error {
		f.Tags = changed(f.Tags, change)
		return checkTags(f.Tags)
	})
	return err
}

func changed(tags map[string]string, change func(map[string]string)) map[string]string {
	tags = maps.Clone(tags)
	if tags == nil {
		tags = map[string]string{}
	}
	change(tags)
	return tags
}

// TagResource adds tags.
func (s *Service) TagResource(ctx context.Context, in *lambda.TagResourceInput) (*lambda.TagResourceOutput, error) {
	if len(in.Tags) == 0 {
		return nil, invalid("An error occurred and the request cannot be processed.")
	}
	return &lambda.TagResourceOutput{}, s.changeTags(ctx, in.Resource, func(tags map[string]string) { maps.Copy(tags, in.Tags) })
}

// UntagResource removes tags.
func (s *Service) UntagResource(ctx context.Context, in *lambda.UntagResourceInput) (*lambda.UntagResourceOutput, error) {
	return &lambda.UntagResourceOutput{}, s.changeTags(ctx, in.Resource, func(tags map[string]string) {
		for _, key := range in.TagKeys {
			delete(tags, key)
		}
	})
}

// ListTags lists tags.
func (s *Service) ListTags(_ context.Context, in *lambda.ListTagsInput) (*lambda.ListTagsOutput, error) {
	v := s.store.View()
	if id, is := s.opts.ResourceOf("lambda", "event-source-mapping:", aws.ToString(in.Resource)); is {
		if m := v.EventSources.Get(id); m != nil {
			return &lambda.ListTagsOutput{Tags: m.Tags}, nil
		}
		return nil, notFound("The resource you requested does not exist.")
	}
	name, qualifier, err := s.target(in.Resource, nil)
	if err != nil {
		return nil, err
	}
	if qualifier != "" {
		return nil, noTagsOfVersions()
	}
	f, err := s.function(v, name)
	if err != nil {
		return nil, err
	}
	return &lambda.ListTagsOutput{Tags: changed(f.Tags, func(map[string]string) {})}, nil
}
