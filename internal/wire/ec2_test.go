package wire_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
)

// fakeEC2 implements DescribeInstances with a function.
type fakeEC2 func(*ec2.DescribeInstancesInput) (*ec2.DescribeInstancesOutput, error)

func (f fakeEC2) DescribeInstances(_ context.Context, in *ec2.DescribeInstancesInput) (*ec2.DescribeInstancesOutput, error) {
	return f(in)
}

func (f fakeEC2) Operations() []call.Operation {
	return []call.Operation{call.Op("DescribeInstances", f.DescribeInstances)}
}

func TestEC2ThroughTheSDK(t *testing.T) {
	in := &ec2.DescribeInstancesInput{
		InstanceIds: []string{"i-1", "i-2"},
		MaxResults:  aws.Int32(5),
		DryRun:      aws.Bool(false),
		Filters: []types.Filter{
			{Name: aws.String("tag:a"), Values: []string{"x", "y & z"}},
			{Name: aws.String("n"), Values: []string{"v"}},
		},
	}
	launched := time.UnixMilli(1700000000000).UTC()
	out := &ec2.DescribeInstancesOutput{NextToken: aws.String("t"), Reservations: []types.Reservation{{
		ReservationId: aws.String("r-1"),
		Groups:        []types.GroupIdentifier{},
		Instances: []types.Instance{{
			InstanceId:       aws.String("i-1"),
			InstanceType:     types.InstanceTypeG4dnXlarge,
			PrivateIpAddress: aws.String("10.0.0.1"),
			PublicDnsName:    aws.String("p"),
			LaunchTime:       &launched,
			State:            &types.InstanceState{Code: aws.Int32(16), Name: types.InstanceStateNameRunning},
			Tags:             []types.Tag{{Key: aws.String("a"), Value: aws.String("<&>")}},
			SecurityGroups:   []types.GroupIdentifier{{GroupId: aws.String("sg-1")}},
		}},
	}}}
	service := fakeEC2(func(got *ec2.DescribeInstancesInput) (*ec2.DescribeInstancesOutput, error) {
		if !reflect.DeepEqual(got, in) {
			t.Errorf("the service got %+v", got)
		}
		return out, nil
	})
	client := ec2.NewFromConfig(config(newHandler(t, wire.Options{}, wire.EC2(service))))
	got, err := client.DescribeInstances(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	out.ResultMetadata = got.ResultMetadata
	if !reflect.DeepEqual(got, out) {
		t.Errorf("the client got %+v", got.Reservations)
	}
}

// fakeTemplates returns these versions of launch templates.
type fakeTemplates []types.LaunchTemplateVersion

func (f fakeTemplates) DescribeLaunchTemplateVersions(
	context.Context, *ec2.DescribeLaunchTemplateVersionsInput,
) (*ec2.DescribeLaunchTemplateVersionsOutput, error) {
	return &ec2.DescribeLaunchTemplateVersionsOutput{LaunchTemplateVersions: f}, nil
}

func (f fakeTemplates) Operations() []call.Operation {
	return []call.Operation{call.Op("DescribeLaunchTemplateVersions", f.DescribeLaunchTemplateVersions)}
}

// TestEC2OddListsThroughTheSDK checks a list with an irregular element name. The SDK finds a network interface's groups only under
// EC2's name for the elements.
func TestEC2OddListsThroughTheSDK(t *testing.T) {
	want := fakeTemplates{{LaunchTemplateData: &types.ResponseLaunchTemplateData{
		SecurityGroupIds:  []string{"sg-1"},
		NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecification{{Groups: []string{"sg-2", "sg-3"}}},
	}}}
	client := ec2.NewFromConfig(config(newHandler(t, wire.Options{}, wire.EC2(want))))
	got, err := client.DescribeLaunchTemplateVersions(t.Context(), &ec2.DescribeLaunchTemplateVersionsInput{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.LaunchTemplateVersions, []types.LaunchTemplateVersion(want)) {
		t.Errorf("the client got %+v", got.LaunchTemplateVersions[0].LaunchTemplateData)
	}
}

func TestEC2ErrorsThroughTheSDK(t *testing.T) {
	service := fakeEC2(func(*ec2.DescribeInstancesInput) (*ec2.DescribeInstancesOutput, error) {
		return nil, &smithy.GenericAPIError{Code: "InvalidInstanceID.NotFound", Message: "a < b"}
	})
	client := ec2.NewFromConfig(config(newHandler(t, wire.Options{}, wire.EC2(service))))
	_, err := client.DescribeInstances(t.Context(), nil)
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "InvalidInstanceID.NotFound" || api.ErrorMessage() != "a < b" {
		t.Errorf("got %v", err)
	}
	_, err = client.DescribeVpcs(t.Context(), nil)
	if !errors.As(err, &api) || api.ErrorCode() != "UnsupportedOperation" {
		t.Errorf("got %v", err)
	}
}

func TestEC2Form(t *testing.T) {
	h := newHandler(t, wire.Options{}, wire.EC2(fakeEC2(func(*ec2.DescribeInstancesInput) (*ec2.DescribeInstancesOutput, error) {
		return &ec2.DescribeInstancesOutput{Reservations: []types.Reservation{}}, nil
	})))
	for _, c := range []struct{ name, body, want string }{
		{
			"an answer", "Action=DescribeInstances",
			`<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>`,
		},
		{"no list left out", "Action=DescribeInstances", `</requestId><reservationSet></reservationSet></DescribeInstancesResponse>`},
		{
			"another's name", "Action=DescribeInstances&InstanceIds.1=i-1",
			"<Response><Errors><Error><Code>UnknownParameter</Code><Message>InstanceIds: there is no such " +
				"parameter.</Message></Error></Errors><RequestID>",
		},
		{"no number", "Action=DescribeInstances&MaxResults=many", "<Code>InvalidParameterValue</Code><Message>MaxResults: "},
		{"no such operation", "Action=DescribeInstance", "<Code>InvalidAction</Code>"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body+"&Version=2016-11-15"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Body.String(); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
