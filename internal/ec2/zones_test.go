package ec2

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
)

func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func TestZones(t *testing.T) {
	s := service(t, 0)
	filter := func(name string, values ...string) []types.Filter {
		return []types.Filter{{Name: &name, Values: values}}
	}
	for name, c := range map[string]struct {
		in   ec2.DescribeAvailabilityZonesInput
		want string
	}{
		"all":     {ec2.DescribeAvailabilityZonesInput{}, "us-east-1a=use1-az1 us-east-1b=use1-az2 us-east-1c=use1-az3"},
		"by name": {ec2.DescribeAvailabilityZonesInput{ZoneNames: []string{"us-east-1b"}}, "us-east-1b=use1-az2"},
		"by id":   {ec2.DescribeAvailabilityZonesInput{ZoneIds: []string{"use1-az3"}}, "us-east-1c=use1-az3"},
		"those available": {ec2.DescribeAvailabilityZonesInput{Filters: filter("state", "available")},
			"us-east-1a=use1-az1 us-east-1b=use1-az2 us-east-1c=use1-az3"},
		"local zones":              {ec2.DescribeAvailabilityZonesInput{Filters: filter("zone-type", "local-zone")}, ""},
		"an unknown one":           {ec2.DescribeAvailabilityZonesInput{ZoneNames: []string{"us-east-1z"}}, "InvalidParameterValue"},
		"a filter of no such name": {ec2.DescribeAvailabilityZonesInput{Filters: filter("colour", "red")}, "InvalidParameterValue"},
		"a dry run":                {ec2.DescribeAvailabilityZonesInput{DryRun: aws.Bool(true)}, "DryRunOperation"},
	} {
		out, err := s.DescribeAvailabilityZones(t.Context(), &c.in)
		got := []string{codeOf(err)}
		if err == nil {
			got = nil
			for _, z := range out.AvailabilityZones {
				got = append(got, *z.ZoneName+"="+*z.ZoneId)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, not %s", name, got, c.want)
		}
	}
	for region, want := range map[string]string{"ap-southeast-2": "apse2", "eu-central-1": "euc1", "us-gov-west-1": "usgw1",
		"ap-northeast-3": "apne3"} {
		if got := shortRegion(region); got != want {
			t.Errorf("%s: %s, not %s", region, got, want)
		}
	}
}

func TestRegions(t *testing.T) {
	s := service(t, 0)
	out, err := s.DescribeRegions(t.Context(), &ec2.DescribeRegionsInput{RegionNames: []string{"us-east-1"}, AllRegions: aws.Bool(true)})
	if err != nil || len(out.Regions) != 1 || *out.Regions[0].RegionName != "us-east-1" ||
		*out.Regions[0].Endpoint != "ec2.us-east-1.amazonaws.com" {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := s.DescribeRegions(t.Context(),
		&ec2.DescribeRegionsInput{RegionNames: []string{"eu-west-9"}}); codeOf(err) != "InvalidParameterValue" {
		t.Error(err)
	}
}

// TestVersionNumbersAreNotReused checks that the number of a deleted version isn't used again: whoever pinned it must
// not get other data.
func TestVersionNumbersAreNotReused(t *testing.T) {
	s := service(t, 0)
	s.opts.Now = time.Now
	data, name := &types.RequestLaunchTemplateData{ImageId: aws.String("ami-00000000")}, aws.String("template")
	if _, err := s.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: name,
		LaunchTemplateData: data,
	}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{2, 3} {
		made, err := s.CreateLaunchTemplateVersion(t.Context(), &ec2.CreateLaunchTemplateVersionInput{
			LaunchTemplateName: name,
			LaunchTemplateData: data,
		})
		if err != nil || *made.LaunchTemplateVersion.VersionNumber != want {
			t.Fatalf("%+v, %v", made, err)
		}
		out, err := s.DeleteLaunchTemplateVersions(t.Context(), &ec2.DeleteLaunchTemplateVersionsInput{
			LaunchTemplateName: name,
			Versions:           []string{"$Latest", "9"},
		})
		if err != nil || len(out.SuccessfullyDeletedLaunchTemplateVersions) != 1 ||
			!strings.HasPrefix(*out.UnsuccessfullyDeletedLaunchTemplateVersions[0].ResponseError.Message, "Could not find") {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	out, err := s.DescribeLaunchTemplates(t.Context(), &ec2.DescribeLaunchTemplatesInput{})
	if err != nil || *out.LaunchTemplates[0].LatestVersionNumber != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}
