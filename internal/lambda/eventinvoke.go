package lambda

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/state"
)

// asynchronous returns whose asynchronous invocations a call is about.
func (s *Service) asynchronous(v *state.View, given, suffix *string) (name, qualifier string, err error) {
	name, qualifier, err = s.target(given, suffix)
	if err == nil {
		_, err = s.version(v, name, qualifier)
	}
	if qualifier == "" {
		qualifier = state.Latest
	}
	return name, qualifier, err
}

func (s *Service) noInvokeConfig(name, qualifier string) error {
	return notFound("The function %s doesn't have an EventInvokeConfig", s.functionARN(name, qualifier))
}

// putInvokeConfig writes how asynchronous invocations are tried. change gets what there was, or an empty row.
func (s *Service) putInvokeConfig(
	ctx context.Context, given, suffix *string, must bool, change func(*types.FunctionEventInvokeConfig),
) (c types.FunctionEventInvokeConfig, err error) {
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		name, qualifier, err := s.asynchronous(tx.View, given, suffix)
		if err != nil {
			return err
		}
		row := state.FunctionInvokeConfig{Function: name, Qualifier: qualifier}
		if old := tx.FunctionInvokeConfigs.Get(state.FunctionKey(name, qualifier)); old != nil {
			row = *old
		} else if must {
			return s.noInvokeConfig(name, qualifier)
		}
		change(&row.FunctionEventInvokeConfig)
		row.FunctionArn = aws.String(s.functionARN(name, qualifier))
		row.LastModified = s.second()
		if err := s.checkInvokeConfig(name, &row.FunctionEventInvokeConfig); err != nil {
			return err
		}
		tx.FunctionInvokeConfigs.Put(&row)
		c = row.FunctionEventInvokeConfig
		return nil
	})
	return c, err
}

// checkInvokeConfig refuses a configuration that says nothing, and destinations that lead nowhere or in a circle.
func (s *Service) checkInvokeConfig(name string, c *types.FunctionEventInvokeConfig) error {
	if c.DestinationConfig == nil && c.MaximumEventAgeInSeconds == nil && c.MaximumRetryAttempts == nil {
		return invalid("You must specify at least one of error handling or destination setting.")
	}
	if d := c.DestinationConfig; d != nil {
		itself := s.functionARN(name, "")
		if d.OnSuccess != nil && aws.ToString(d.OnSuccess.Destination) == itself || d.OnFailure != nil && aws.ToString(d.OnFailure.Destination) == itself {
			return invalid("You can't specify the function as a destination for itself.")
		}
	}
	return s.checkDestinations(c.DestinationConfig)
}

// PutFunctionEventInvokeConfig says how asynchronous invocations are tried.
func (s *Service) PutFunctionEventInvokeConfig(
	ctx context.Context, in *lambda.PutFunctionEventInvokeConfigInput,
) (*lambda.PutFunctionEventInvokeConfigOutput, error) {
	c, err := s.putInvokeConfig(ctx, in.FunctionName, in.Qualifier, false, func(c *types.FunctionEventInvokeConfig) {
		c.DestinationConfig = in.DestinationConfig
		c.MaximumEventAgeInSeconds = in.MaximumEventAgeInSeconds
		c.MaximumRetryAttempts = in.MaximumRetryAttempts
	})
	if err != nil {
		return nil, err
	}
	return shown[lambda.PutFunctionEventInvokeConfigOutput](c), nil
}

// UpdateFunctionEventInvokeConfig changes how asynchronous invocations are tried.
func (s *Service) UpdateFunctionEventInvokeConfig(
	ctx context.Context, in *lambda.UpdateFunctionEventInvokeConfigInput,
) (*lambda.UpdateFunctionEventInvokeConfigOutput, error) {
	c, err := s.putInvokeConfig(ctx, in.FunctionName, in.Qualifier, true, func(c *types.FunctionEventInvokeConfig) {
		set(&c.DestinationConfig, in.DestinationConfig)
		set(&c.MaximumEventAgeInSeconds, in.MaximumEventAgeInSeconds)
		set(&c.MaximumRetryAttempts, in.MaximumRetryAttempts)
	})
	if err != nil {
		return nil, err
	}
	return shown[lambda.UpdateFunctionEventInvokeConfigOutput](c), nil
}

// GetFunctionEventInvokeConfig returns how asynchronous invocations are tried.
func (s *Service) GetFunctionEventInvokeConfig(
	_ context.Context, in *lambda.GetFunctionEventInvokeConfigInput,
) (*lambda.GetFunctionEventInvokeConfigOutput, error) {
	v := s.store.View()
	name, qualifier, err := s.asynchronous(v, in.FunctionName, in.Qualifier)
	if err != nil {
		return nil, err
	}
	row := v.FunctionInvokeConfigs.Get(state.FunctionKey(name, qualifier))
	if row == nil {
		return nil, s.noInvokeConfig(name, qualifier)
	}
	return shown[lambda.GetFunctionEventInvokeConfigOutput](row.FunctionEventInvokeConfig), nil
}

// DeleteFunctionEventInvokeConfig has asynchronous invocations tried as usual.
func (s *Service) DeleteFunctionEventInvokeConfig(
	ctx context.Context, in *lambda.DeleteFunctionEventInvokeConfigInput,
) (*lambda.DeleteFunctionEventInvokeConfigOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		name, qualifier, err := s.asynchronous(tx.View, in.FunctionName, in.Qualifier)
		if err != nil {
			return err
		}
		key := state.FunctionKey(name, qualifier)
		if tx.FunctionInvokeConfigs.Get(key) == nil {
			return s.noInvokeConfig(name, qualifier)
		}
		tx.FunctionInvokeConfigs.Delete(key)
		return nil
	})
	return &lambda.DeleteFunctionEventInvokeConfigOutput{}, err
}

// ListFunctionEventInvokeConfigs lists what there is of a function.
func (s *Service) ListFunctionEventInvokeConfigs(
	_ context.Context, in *lambda.ListFunctionEventInvokeConfigsInput,
) (*lambda.ListFunctionEventInvokeConfigsOutput, error) {
	v := s.store.View()
	name, _, err := s.asynchronous(v, in.FunctionName, nil)
	if err != nil {
		return nil, err
	}
	var rows []types.FunctionEventInvokeConfig
	for c := range v.InvokeConfigsOf(name) {
		rows = append(rows, c.FunctionEventInvokeConfig)
	}
	rows, next, err := page("event invoke configs", rows, in.MaxItems, in.Marker, func(c types.FunctionEventInvokeConfig) string {
		return *c.FunctionArn
	})
	if err != nil {
		return nil, err
	}
	return &lambda.ListFunctionEventInvokeConfigsOutput{FunctionEventInvokeConfigs: rows, NextMarker: next}, nil
}
