package ecr

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecr/lifecycle"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// parsePolicy parses a policy that a repository gets, which names no resources: it is about the repository.
func parsePolicy(text string) (*policy.Policy, error) {
	p, err := policy.Check(policy.Resource, text)
	if err != nil || hasResources(text) {
		return nil, badParameter("PolicyText", "Invalid repository policy provided")
	}
	return p, nil
}

// hasResources reports whether a statement of a document that parses names resources.
func hasResources(text string) bool {
	type statement struct{ Resource, NotResource any }
	var document struct{ Statement json.RawMessage }
	if json.Unmarshal([]byte(text), &document) != nil {
		return true
	}
	list := bytes.TrimSpace(document.Statement)
	if len(list) > 0 && list[0] == '{' {
		list = append(append([]byte{'['}, list...), ']')
	}
	var statements []statement
	if json.Unmarshal(list, &statements) != nil {
		return true
	}
	for _, s := range statements {
		if s.Resource != nil || s.NotResource != nil {
			return true
		}
	}
	return false
}

// SetRepositoryPolicy gives a repository a policy in the place of any other. One that keeps its caller from setting another must be forced.
func (s *Service) SetRepositoryPolicy(ctx context.Context, in *ecr.SetRepositoryPolicyInput) (*ecr.SetRepositoryPolicyOutput, error) {
	p, err := parsePolicy(*in.PolicyText)
	if err != nil {
		return nil, err
	}
	by := call.From(ctx)
	r, err := s.change(ctx, in.RegistryId, in.RepositoryName, func(r *state.Repository) error {
		if !in.Force && s.locksOut(p, by.Identity, r.Name) {
			return badParameter("PolicyText", "The policy denies its caller ecr:SetRepositoryPolicy, which must be forced")
		}
		r.Policy = *in.PolicyText
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecr.SetRepositoryPolicyOutput{PolicyText: &r.Policy, RegistryId: &s.opts.ID, RepositoryName: &r.Name}, nil
}

// locksOut reports whether a policy denies a caller to set another.
func (s *Service) locksOut(p *policy.Policy, by call.Identity, name string) bool {
	who := policy.Principal{ARN: by.Principal, Role: by.Role}
	if who.ARN == "" {
		who.ARN = s.opts.Root()
	}
	request := policy.Request{Principal: who, Action: "ecr:SetRepositoryPolicy", Resource: s.arn(name), Context: policy.Context{}}
	return policy.Evaluate(request, policy.Policies{Resource: p}).Effect == policy.ExplicitDeny
}

// noPolicy is the error for a repository without a policy.
func (s *Service) noPolicy(name string) error {
	return &types.RepositoryPolicyNotFoundException{Message: account.Message(
		"Repository policy does not exist for the repository with name '%s' in the registry with id '%s'", name, s.opts.ID)}
}

// GetRepositoryPolicy returns a repository's policy.
func (s *Service) GetRepositoryPolicy(_ context.Context, in *ecr.GetRepositoryPolicyInput) (*ecr.GetRepositoryPolicyOutput, error) {
	r, err := s.find(s.store.View(), in.RegistryId, in.RepositoryName)
	if err != nil {
		return nil, err
	}
	if r.Policy == "" {
		return nil, s.noPolicy(r.Name)
	}
	return &ecr.GetRepositoryPolicyOutput{PolicyText: &r.Policy, RegistryId: &s.opts.ID, RepositoryName: &r.Name}, nil
}

// DeleteRepositoryPolicy takes a repository's policy away.
func (s *Service) DeleteRepositoryPolicy(
	ctx context.Context, in *ecr.DeleteRepositoryPolicyInput,
) (*ecr.DeleteRepositoryPolicyOutput, error) {
	var was string
	r, err := s.change(ctx, in.RegistryId, in.RepositoryName, func(r *state.Repository) error {
		if was = r.Policy; was == "" {
			return s.noPolicy(r.Name)
		}
		r.Policy = ""
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecr.DeleteRepositoryPolicyOutput{PolicyText: &was, RegistryId: &s.opts.ID, RepositoryName: &r.Name}, nil
}

// PutLifecyclePolicy gives a repository a policy that expires images.
func (s *Service) PutLifecyclePolicy(ctx context.Context, in *ecr.PutLifecyclePolicyInput) (*ecr.PutLifecyclePolicyOutput, error) {
	if _, err := lifecycle.Parse(*in.LifecyclePolicyText); err != nil {
		return nil, badParameter("LifecyclePolicyText", "Lifecycle policy validation failure: %s", err.Error())
	}
	r, err := s.change(ctx, in.RegistryId, in.RepositoryName, func(r *state.Repository) error {
		r.Lifecycle = *in.LifecyclePolicyText
		r.Evaluated = nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecr.PutLifecyclePolicyOutput{LifecyclePolicyText: &r.Lifecycle, RegistryId: &s.opts.ID, RepositoryName: &r.Name}, nil
}

// noLifecycle is the error for a repository without a lifecycle policy.
func (s *Service) noLifecycle(name string) error {
	return &types.LifecyclePolicyNotFoundException{Message: account.Message(
		"Lifecycle policy does not exist for the repository with name '%s' in the registry with id '%s'", name, s.opts.ID)}
}

// GetLifecyclePolicy returns a repository's lifecycle policy, and when it was last evaluated.
func (s *Service) GetLifecyclePolicy(_ context.Context, in *ecr.GetLifecyclePolicyInput) (*ecr.GetLifecyclePolicyOutput, error) {
	r, err := s.find(s.store.View(), in.RegistryId, in.RepositoryName)
	if err != nil {
		return nil, err
	}
	if r.Lifecycle == "" {
		return nil, s.noLifecycle(r.Name)
	}
	return &ecr.GetLifecyclePolicyOutput{
		LastEvaluatedAt:     r.Evaluated,
		LifecyclePolicyText: &r.Lifecycle,
		RegistryId:          &s.opts.ID,
		RepositoryName:      &r.Name,
	}, nil
}

// DeleteLifecyclePolicy takes a repository's lifecycle policy away.
func (s *Service) DeleteLifecyclePolicy(
	ctx context.Context, in *ecr.DeleteLifecyclePolicyInput,
) (*ecr.DeleteLifecyclePolicyOutput, error) {
	out := &ecr.DeleteLifecyclePolicyOutput{RegistryId: &s.opts.ID, RepositoryName: in.RepositoryName}
	_, err := s.change(ctx, in.RegistryId, in.RepositoryName, func(r *state.Repository) error {
		if r.Lifecycle == "" {
			return s.noLifecycle(r.Name)
		}
		was := r.Lifecycle
		out.LifecyclePolicyText = &was
		out.LastEvaluatedAt = r.Evaluated
		r.Lifecycle = ""
		r.Evaluated = nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
