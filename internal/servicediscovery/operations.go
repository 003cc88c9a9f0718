package servicediscovery

import (
	"context"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/servicediscovery"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// GetOperation describes what became of a change.
func (s *Service) GetOperation(_ context.Context, in *api.GetOperationInput) (*api.GetOperationOutput, error) {
	row := s.store.View().DiscoveryOperations.Get(*in.OperationId)
	if row == nil || in.OwnerAccount != nil && *in.OwnerAccount != s.opts.ID {
		return nil, &types.OperationNotFound{Message: account.Message("Operation with id %s not found.", *in.OperationId)}
	}
	return &api.GetOperationOutput{Operation: &row.Operation}, nil
}

// operationConditions are the conditions of each filter: API_OperationFilter.
var operationConditions = map[string][]types.FilterCondition{
	"NAMESPACE_ID": {types.FilterConditionEq},
	"SERVICE_ID":   {types.FilterConditionEq},
	"STATUS":       {types.FilterConditionEq, types.FilterConditionIn},
	"TYPE":         {types.FilterConditionEq, types.FilterConditionIn},
	"UPDATE_DATE":  {types.FilterConditionBetween},
}

func operationValue(o *state.DiscoveryOperation, name string) string {
	switch name {
	case "NAMESPACE_ID":
		return o.Targets[string(types.OperationTargetTypeNamespace)]
	case "SERVICE_ID":
		return o.Targets[string(types.OperationTargetTypeService)]
	case "STATUS":
		return string(o.Status)
	case "TYPE":
		return string(o.Type)
	}
	return strconv.FormatFloat(float64(o.UpdateDate.UnixMilli())/1000, 'f', -1, 64)
}

// ListOperations lists the operations that pass all filters.
func (s *Service) ListOperations(_ context.Context, in *api.ListOperationsInput) (*api.ListOperationsOutput, error) {
	var filters []filter
	for _, f := range in.Filters {
		filters = append(filters, filter{string(f.Name), f.Condition, f.Values})
	}
	if err := checkFilters(filters, operationConditions); err != nil {
		return nil, err
	}
	page, next, err := account.Behind(listing("ListOperations"), in.MaxResults, in.NextToken, s.store.View().DiscoveryOperations.Behind,
		func(o *state.DiscoveryOperation) string { return aws.ToString(o.Id) }, func(o *state.DiscoveryOperation) bool {
			return !slices.ContainsFunc(filters, func(f filter) bool { return !f.passes(operationValue(o, f.name)) })
		})
	if err != nil {
		return nil, err
	}
	out := &api.ListOperationsOutput{Operations: []types.OperationSummary{}, NextToken: next}
	for _, row := range page {
		out.Operations = append(out.Operations, types.OperationSummary{Id: row.Id, Status: row.Status})
	}
	return out, nil
}
