package cloudformation

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/resources"
)

// ListTypes lists the public types of resources, which are those that templates may have. There are no private ones, no modules and no hooks.
func (s *Service) ListTypes(_ context.Context, in *cloudformation.ListTypesInput) (*cloudformation.ListTypesOutput, error) {
	if in.ProvisioningType != "" {
		return nil, &types.CFNRegistryException{Message: account.Message("Pintle does not list types by their ProvisioningType: leave it out.")}
	}
	page, next, err := account.Sorted(listing("ListTypes", 100), listed(in), in.MaxResults, in.NextToken, strings.Clone)
	if err != nil {
		return nil, err
	}
	out := &cloudformation.ListTypesOutput{TypeSummaries: []types.TypeSummary{}, NextToken: next}
	for _, name := range page {
		arn := "arn:aws:cloudformation:" + s.opts.Account.Region + "::type/resource/" + strings.ReplaceAll(name, "::", "-")
		out.TypeSummaries = append(out.TypeSummaries, types.TypeSummary{Type: types.RegistryTypeResource, TypeName: &name, TypeArn: &arn})
	}
	return out, nil
}

// listed returns the names of the types that a call asks for.
func listed(in *cloudformation.ListTypesInput) (names []string) {
	var filters types.TypeFilters
	if in.Filters != nil {
		filters = *in.Filters
	}
	switch {
	case in.Visibility != types.VisibilityPublic, in.DeprecatedStatus == types.DeprecatedStatusDeprecated:
		return nil
	case in.Type != "" && in.Type != types.RegistryTypeResource:
		return nil
	case filters.Category != "" && filters.Category != types.CategoryAwsTypes, filters.PublisherId != nil:
		return nil
	}
	for _, name := range resources.Names() {
		if strings.HasPrefix(name, aws.ToString(filters.TypeNamePrefix)) {
			names = append(names, name)
		}
	}
	return names
}
