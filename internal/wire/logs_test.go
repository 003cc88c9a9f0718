package wire_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
)

// fakeLogs accepts events once, and records the integration it gets.
type fakeLogs struct {
	events      []types.InputLogEvent
	integration types.ResourceConfig
}

func (f *fakeLogs) PutLogEvents(_ context.Context, in *cloudwatchlogs.PutLogEventsInput) (*cloudwatchlogs.PutLogEventsOutput, error) {
	if f.events != nil {
		return nil, &types.InvalidSequenceTokenException{ExpectedSequenceToken: aws.String("2"), Message: aws.String("no")}
	}
	f.events = in.LogEvents
	return &cloudwatchlogs.PutLogEventsOutput{NextSequenceToken: aws.String("1")}, nil
}

func (f *fakeLogs) PutIntegration(_ context.Context, in *cloudwatchlogs.PutIntegrationInput) (*cloudwatchlogs.PutIntegrationOutput, error) {
	f.integration = in.ResourceConfig
	return &cloudwatchlogs.PutIntegrationOutput{IntegrationName: in.IntegrationName}, nil
}

func (f *fakeLogs) GetIntegration(context.Context, *cloudwatchlogs.GetIntegrationInput) (*cloudwatchlogs.GetIntegrationOutput, error) {
	return &cloudwatchlogs.GetIntegrationOutput{IntegrationDetails: &types.IntegrationDetailsMemberOpenSearchIntegrationDetails{
		Value: types.OpenSearchIntegrationDetails{Application: &types.OpenSearchApplication{ApplicationId: aws.String("a")}},
	}}, nil
}

func (f *fakeLogs) Operations() []call.Operation {
	return []call.Operation{
		call.Op("PutLogEvents", f.PutLogEvents),
		call.Op("PutIntegration", f.PutIntegration),
		call.Op("GetIntegration", f.GetIntegration),
	}
}

func TestLogsThroughTheSDK(t *testing.T) {
	service := &fakeLogs{}
	client := cloudwatchlogs.NewFromConfig(config(newHandler(t, wire.Options{}, wire.Logs(service))))
	in := &cloudwatchlogs.PutLogEventsInput{
		LogGroupName:  aws.String("/train"),
		LogStreamName: aws.String("t/main/1"),
		LogEvents:     []types.InputLogEvent{{Timestamp: aws.Int64(1700000000123), Message: aws.String("loss 0.1\t\u001b[0m")}},
	}
	if _, err := client.PutLogEvents(t.Context(), in); err != nil || !reflect.DeepEqual(service.events, in.LogEvents) {
		t.Errorf("got %+v %v", service.events, err)
	}
	_, err := client.PutLogEvents(t.Context(), in)
	var token *types.InvalidSequenceTokenException
	if !errors.As(err, &token) || aws.ToString(token.ExpectedSequenceToken) != "2" || token.ErrorMessage() != "no" {
		t.Errorf("got %v", err)
	}
}

func TestUnionsThroughTheSDK(t *testing.T) {
	service := &fakeLogs{}
	client := cloudwatchlogs.NewFromConfig(config(newHandler(t, wire.Options{}, wire.Logs(service))))
	config := &types.ResourceConfigMemberOpenSearchResourceConfig{Value: types.OpenSearchResourceConfig{
		DashboardViewerPrincipals: []string{"p"},
		DataSourceRoleArn:         aws.String("r"),
		RetentionDays:             aws.Int32(3),
	}}
	_, err := client.PutIntegration(t.Context(), &cloudwatchlogs.PutIntegrationInput{
		IntegrationName: aws.String("i"),
		IntegrationType: types.IntegrationTypeOpensearch,
		ResourceConfig:  config,
	})
	if err != nil || !reflect.DeepEqual(service.integration, types.ResourceConfig(config)) {
		t.Errorf("the service got %+v, the client %v", service.integration, err)
	}
	out, err := client.GetIntegration(t.Context(), &cloudwatchlogs.GetIntegrationInput{IntegrationName: aws.String("i")})
	if err != nil {
		t.Fatal(err)
	}
	details, ok := out.IntegrationDetails.(*types.IntegrationDetailsMemberOpenSearchIntegrationDetails)
	if !ok || *details.Value.Application.ApplicationId != "a" {
		t.Errorf("the client got %+v", out.IntegrationDetails)
	}
}
