package lambda

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pintle/pintle/internal/state"
)

// The limits of mappings of queues: API_CreateEventSourceMapping.
const (
	defaultBatch   = 10
	maxSmallBatch  = 10 // without a batching window
	maxBatch       = 10_000
	minConcurrency = 2
)

// settings is what CreateEventSourceMapping and UpdateEventSourceMapping have in common.
type settings = lambda.UpdateEventSourceMappingInput

// unsupportedMapping names what a mapping is asked to have that Pintle doesn't have, or is "".
func unsupportedMapping(in *settings) string {
	for _, one := range []struct {
		name  string
		asked bool
	}{
		{"AmazonManagedKafkaEventSourceConfig", in.AmazonManagedKafkaEventSourceConfig != nil},
		{"BisectBatchOnFunctionError", in.BisectBatchOnFunctionError != nil},
		{"DestinationConfig", asksDestination(in.DestinationConfig)},
		{"DocumentDBEventSourceConfig", in.DocumentDBEventSourceConfig != nil},
		{"FilterCriteria", in.FilterCriteria != nil && len(in.FilterCriteria.Filters) > 0},
		{"KMSKeyArn", aws.ToString(in.KMSKeyArn) != ""},
		{"LoggingConfig", in.LoggingConfig != nil},
		{"MaximumRecordAgeInSeconds", in.MaximumRecordAgeInSeconds != nil},
		{"MaximumRetryAttempts", in.MaximumRetryAttempts != nil},
		{"MetricsConfig", in.MetricsConfig != nil && len(in.MetricsConfig.Metrics) > 0},
		{"ParallelizationFactor", in.ParallelizationFactor != nil},
		{"ProvisionedPollerConfig", in.ProvisionedPollerConfig != nil},
		{"SelfManagedKafkaEventSourceConfig", in.SelfManagedKafkaEventSourceConfig != nil},
		{"SourceAccessConfigurations", len(in.SourceAccessConfigurations) > 0},
		{"TumblingWindowInSeconds", aws.ToInt32(in.TumblingWindowInSeconds) != 0},
	} {
		if one.asked {
			return one.name
		}
	}
	return ""
}

// asksDestination reports whether a call names a destination. What names none takes one away.
func asksDestination(c *types.DestinationConfig) bool {
	return c != nil && (c.OnFailure != nil && aws.ToString(c.OnFailure.Destination) != "" || c.OnSuccess != nil && aws.ToString(c.OnSuccess.Destination) != "")
}

// applyMapping changes a mapping as a call asks.
func (s *Service) applyMapping(v *state.View, in *settings, to *state.EventSourceMapping) error {
	if name := unsupportedMapping(in); name != "" {
		return invalid("%s: Pintle's event source mappings are of SQS, and don't have it.", name)
	}
	if in.FunctionName != nil {
		name, qualifier, err := s.target(in.FunctionName, nil)
		if err != nil {
			return err
		}
		if _, err := s.version(v, name, qualifier); err != nil {
			return invalid("Function does not exist")
		}
		to.Function = name
		to.FunctionArn = aws.String(s.functionARN(name, qualifier))
	}
	set(&to.BatchSize, in.BatchSize)
	set(&to.MaximumBatchingWindowInSeconds, in.MaximumBatchingWindowInSeconds)
	if in.FunctionResponseTypes != nil {
		to.FunctionResponseTypes = in.FunctionResponseTypes
	}
	if in.ScalingConfig != nil {
		to.ScalingConfig = in.ScalingConfig
		if in.ScalingConfig.MaximumConcurrency == nil {
			to.ScalingConfig = nil
		}
	}
	if in.Enabled != nil {
		to.State = aws.String("Disabled")
		if *in.Enabled {
			to.State = aws.String("Enabled")
		}
	}
	to.LastModified = s.second()
	return checkMapping(to)
}

func checkMapping(m *state.EventSourceMapping) error {
	size, window := *m.BatchSize, aws.ToInt32(m.MaximumBatchingWindowInSeconds)
	fifo := strings.HasSuffix(*m.EventSourceArn, ".fifo")
	switch {
	case size > maxSmallBatch && fifo:
		return invalid("Batch size must be less than or equal to %d for a FIFO queue.", maxSmallBatch)
	case size > maxSmallBatch && window == 0:
		return invalid("Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than %d", maxSmallBatch)
	case size > maxBatch:
		return invalid("BatchSize must be at most %d.", maxBatch)
	case window > 0 && fifo:
		return invalid("Batching window is not supported for FIFO queues")
	}
	if c := m.ScalingConfig; c != nil && *c.MaximumConcurrency < minConcurrency {
		return invalid("ScalingConfig.MaximumConcurrency must be at least %d.", minConcurrency)
	}
	return nil
}

// checkQueue refuses a queue that isn't there, or that gives messages to others while a function may still be handling them.
func (s *Service) checkQueue(ctx context.Context, m *state.EventSourceMapping) error {
	arn := *m.EventSourceArn
	if name, ours := s.opts.ResourceOf("sqs", "", arn); !ours || name == "" {
		return invalid("EventSourceArn: %s is no SQS queue of this account and region; Pintle's event source mappings are of those alone.", arn)
	}
	visibility := sqstypes.QueueAttributeNameVisibilityTimeout
	out, err := s.opts.Sources.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(s.opts.QueueURL(arn)), AttributeNames: []sqstypes.QueueAttributeName{visibility},
	})
	if err != nil {
		return invalid("Error occurred while ReceiveMessage. SQS Error Code: AWS.SimpleQueueService.NonExistentQueue. SQS Error Message: %v", err)
	}
	row, err := s.versionAt(s.store.View(), m.FunctionArn)
	if err != nil {
		return err
	}
	seconds, _ := strconv.Atoi(out.Attributes[string(visibility)]) //nolint:errcheck // it's a number
	if seconds < int(*row.Timeout) {
		return invalid("Queue visibility timeout: %d seconds is less than Function timeout: %d seconds", seconds, *row.Timeout)
	}
	return nil
}

func (s *Service) versionAt(v *state.View, arn *string) (*state.FunctionVersion, error) {
	name, qualifier, err := s.target(arn, nil)
	if err != nil {
		return nil, err
	}
	return s.version(v, name, qualifier)
}

// CreateEventSourceMapping has a function called with what is in a queue.
func (s *Service) CreateEventSourceMapping(
	ctx context.Context, in *lambda.CreateEventSourceMappingInput,
) (*lambda.CreateEventSourceMappingOutput, error) {
	switch {
	case in.SelfManagedEventSource != nil || len(in.Topics) > 0 || len(in.Queues) > 0 || in.StartingPosition != "" || in.StartingPositionTimestamp != nil:
		return nil, invalid("SelfManagedEventSource, Topics, Queues and StartingPosition are for Kafka, Amazon MQ and streams, which Pintle doesn't have.")
	case in.EventSourceArn == nil:
		return nil, invalid("EventSourceArn is required for a mapping of a queue.")
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	m := &state.EventSourceMapping{Tags: in.Tags}
	m.UUID = aws.String(state.NewUUID())
	m.EventSourceMappingArn = aws.String(s.opts.ARN("lambda", "event-source-mapping:"+*m.UUID))
	m.EventSourceArn = in.EventSourceArn
	m.BatchSize = aws.Int32(defaultBatch)
	m.MaximumBatchingWindowInSeconds = aws.Int32(0)
	m.State = aws.String("Enabled")
	m.StateTransitionReason = aws.String("USER_INITIATED")
	asked := &settings{
		AmazonManagedKafkaEventSourceConfig: in.AmazonManagedKafkaEventSourceConfig, BatchSize: in.BatchSize,
		BisectBatchOnFunctionError: in.BisectBatchOnFunctionError, DestinationConfig: in.DestinationConfig,
		DocumentDBEventSourceConfig: in.DocumentDBEventSourceConfig, Enabled: in.Enabled, FilterCriteria: in.FilterCriteria,
		FunctionName: in.FunctionName, FunctionResponseTypes: in.FunctionResponseTypes, KMSKeyArn: in.KMSKeyArn, LoggingConfig: in.LoggingConfig,
		MaximumBatchingWindowInSeconds: in.MaximumBatchingWindowInSeconds, MaximumRecordAgeInSeconds: in.MaximumRecordAgeInSeconds,
		MaximumRetryAttempts: in.MaximumRetryAttempts, MetricsConfig: in.MetricsConfig, ParallelizationFactor: in.ParallelizationFactor,
		ProvisionedPollerConfig: in.ProvisionedPollerConfig, ScalingConfig: in.ScalingConfig,
		SelfManagedKafkaEventSourceConfig: in.SelfManagedKafkaEventSourceConfig, SourceAccessConfigurations: in.SourceAccessConfigurations,
		TumblingWindowInSeconds: in.TumblingWindowInSeconds,
	}
	if err := s.applyMapping(s.store.View(), asked, m); err != nil {
		return nil, err
	}
	if err := s.checkQueue(ctx, m); err != nil {
		return nil, err
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		for other := range tx.MappingsOf(m.Function) {
			if *other.EventSourceArn == *m.EventSourceArn && *other.FunctionArn == *m.FunctionArn {
				return conflict("An event source mapping with SQS arn (\" %s \") and function (\" %s \") already exists. Please update or delete the "+
					"existing mapping with UUID %s", *m.EventSourceArn, m.Function, *other.UUID)
			}
		}
		tx.EventSources.Put(m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return shown[lambda.CreateEventSourceMappingOutput](m.EventSourceMappingConfiguration), nil
}

func (s *Service) mapping(v *state.View, id *string) (*state.EventSourceMapping, error) {
	m := v.EventSources.Get(aws.ToString(id))
	if m == nil {
		return nil, notFound("The resource you requested does not exist.")
	}
	return m, nil
}

// GetEventSourceMapping returns a mapping.
func (s *Service) GetEventSourceMapping(
	_ context.Context, in *lambda.GetEventSourceMappingInput,
) (*lambda.GetEventSourceMappingOutput, error) {
	m, err := s.mapping(s.store.View(), in.UUID)
	if err != nil {
		return nil, err
	}
	return shown[lambda.GetEventSourceMappingOutput](m.EventSourceMappingConfiguration), nil
}

// changeMapping has something done with a copy of a mapping's row, which it returns.
func (s *Service) changeMapping(
	ctx context.Context, id *string, change func(*state.Tx, *state.EventSourceMapping) error,
) (m state.EventSourceMapping, err error) {
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.mapping(tx.View, id)
		if err != nil {
			return err
		}
		m = *old
		return change(tx, &m)
	})
	return m, err
}

// UpdateEventSourceMapping changes a mapping.
func (s *Service) UpdateEventSourceMapping(
	ctx context.Context, in *lambda.UpdateEventSourceMappingInput,
) (*lambda.UpdateEventSourceMappingOutput, error) {
	m, err := s.changeMapping(ctx, in.UUID, func(tx *state.Tx, m *state.EventSourceMapping) error {
		if err := s.applyMapping(tx.View, in, m); err != nil {
			return err
		}
		tx.EventSources.Put(m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return shown[lambda.UpdateEventSourceMappingOutput](m.EventSourceMappingConfiguration), nil
}

// DeleteEventSourceMapping ends a mapping. What its function is handling is handled to the end.
func (s *Service) DeleteEventSourceMapping(
	ctx context.Context, in *lambda.DeleteEventSourceMappingInput,
) (*lambda.DeleteEventSourceMappingOutput, error) {
	m, err := s.changeMapping(ctx, in.UUID, func(tx *state.Tx, m *state.EventSourceMapping) error {
		m.State = aws.String("Deleting")
		tx.EventSources.Delete(*m.UUID)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return shown[lambda.DeleteEventSourceMappingOutput](m.EventSourceMappingConfiguration), nil
}

// ListEventSourceMappings lists mappings: all, those of a function, or those of a queue.
func (s *Service) ListEventSourceMappings(
	_ context.Context, in *lambda.ListEventSourceMappingsInput,
) (*lambda.ListEventSourceMappingsOutput, error) {
	name, qualifier, err := s.target(in.FunctionName, nil)
	if err != nil {
		return nil, err
	}
	var rows []types.EventSourceMappingConfiguration
	for m := range s.store.View().EventSources.All() {
		if (name == "" || *m.FunctionArn == s.functionARN(name, qualifier)) && cmp.Or(aws.ToString(in.EventSourceArn), *m.EventSourceArn) == *m.EventSourceArn {
			rows = append(rows, m.EventSourceMappingConfiguration)
		}
	}
	rows, next, err := page("event source mappings", rows, in.MaxItems, in.Marker, func(m types.EventSourceMappingConfiguration) string {
		return *m.UUID
	})
	if err != nil {
		return nil, err
	}
	return &lambda.ListEventSourceMappingsOutput{EventSourceMappings: rows, NextMarker: next}, nil
}

// Call runs a function for an event source mapping: an answer is waited for, and an error says that it wasn't called.
func (s *Service) Call(ctx context.Context, arn string, event []byte) (answer []byte, failed bool, err error) {
	v := s.store.View()
	name, qualifier, err := s.target(&arn, nil)
	if err != nil {
		return nil, false, err
	}
	row, err := s.version(v, name, qualifier)
	if err != nil {
		return nil, false, err
	}
	r, err := s.opts.Runner.Do(ctx, s.work(v, v.Functions.Get(name), row, qualifier, "", event))
	return r.Payload, r.Error != "", err
}
