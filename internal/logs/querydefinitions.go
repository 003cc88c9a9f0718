package logs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxDefinitions is how many query definitions there can be: the quota of AWS.
const maxDefinitions = 1000

// PutQueryDefinition saves a query under a name, or replaces the definition with an id. With a clientToken, the same call saves it once.
func (s *Service) PutQueryDefinition(
	ctx context.Context, in *cloudwatchlogs.PutQueryDefinitionInput,
) (*cloudwatchlogs.PutQueryDefinitionOutput, error) {
	if err := checkLanguage(in.QueryLanguage); err != nil {
		return nil, err
	}
	row := &state.QueryDefinition{
		ID:           aws.ToString(in.QueryDefinitionId),
		Name:         *in.Name,
		Query:        *in.QueryString,
		LogGroups:    in.LogGroupNames,
		Parameters:   in.Parameters,
		LastModified: s.opts.Now(),
	}
	err := s.opts.State.Update(ctx, func(tx *state.Tx) error {
		if row.ID != "" {
			if tx.QueryDefinitions.Get(row.ID) == nil {
				return definitionNotFound()
			}
			tx.QueryDefinitions.Put(row)
			return nil
		}
		row.ID = definitionID(in.ClientToken)
		if tx.QueryDefinitions.Get(row.ID) != nil {
			return nil // the call was repeated
		}
		if len(slices.Collect(tx.QueryDefinitions.All())) >= maxDefinitions {
			return &types.LimitExceededException{Message: account.Message("There can be at most %d query definitions.", maxDefinitions)}
		}
		tx.QueryDefinitions.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.PutQueryDefinitionOutput{QueryDefinitionId: &row.ID}, nil
}

// definitionID returns the id of a new definition, which follows from the token if there is one.
func definitionID(token *string) string {
	if token != nil {
		return account.UUID("query-definition", *token)
	}
	return uuid.NewString()
}

func definitionNotFound() error {
	return &types.ResourceNotFoundException{Message: aws.String("The specified query definition does not exist.")}
}

// DescribeQueryDefinitions lists query definitions by their ids.
func (s *Service) DescribeQueryDefinitions(
	_ context.Context, in *cloudwatchlogs.DescribeQueryDefinitionsInput,
) (*cloudwatchlogs.DescribeQueryDefinitionsOutput, error) {
	language := cmp.Or(in.QueryLanguage, types.QueryLanguageCwli)
	page, next, err := account.Behind(listing("DescribeQueryDefinitions", maxQueries), in.MaxResults, in.NextToken,
		s.opts.State.View().QueryDefinitions.Behind,
		func(d *state.QueryDefinition) string { return d.ID },
		func(d *state.QueryDefinition) bool {
			return strings.HasPrefix(d.Name, aws.ToString(in.QueryDefinitionNamePrefix)) && language == types.QueryLanguageCwli
		})
	if err != nil {
		return nil, err
	}
	out := &cloudwatchlogs.DescribeQueryDefinitionsOutput{QueryDefinitions: []types.QueryDefinition{}, NextToken: next}
	for _, d := range page {
		out.QueryDefinitions = append(out.QueryDefinitions, types.QueryDefinition{
			QueryDefinitionId: &d.ID,
			Name:              &d.Name,
			QueryString:       &d.Query,
			QueryLanguage:     types.QueryLanguageCwli,
			LastModified:      aws.Int64(d.LastModified.UnixMilli()),
			LogGroupNames:     d.LogGroups,
			Parameters:        d.Parameters,
		})
	}
	return out, nil
}

// DeleteQueryDefinition deletes a query definition.
func (s *Service) DeleteQueryDefinition(
	ctx context.Context, in *cloudwatchlogs.DeleteQueryDefinitionInput,
) (*cloudwatchlogs.DeleteQueryDefinitionOutput, error) {
	err := s.opts.State.Update(ctx, func(tx *state.Tx) error {
		if tx.QueryDefinitions.Get(*in.QueryDefinitionId) == nil {
			return definitionNotFound()
		}
		tx.QueryDefinitions.Delete(*in.QueryDefinitionId)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.DeleteQueryDefinitionOutput{Success: true}, nil
}
