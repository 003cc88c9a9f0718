package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// id returns the id of the nth instance.
func id(n int) string { return fmt.Sprintf("i-%017x", n) }

// node returns the nth container instance, a g4dn.xlarge.
func node(n int) *state.ContainerInstance {
	arn := fmt.Sprintf("arn:aws:ecs:us-east-1:000000000000:container-instance/default/%032x", n)
	row := &state.ContainerInstance{
		ClusterArn:       "arn:aws:ecs:us-east-1:000000000000:cluster/default",
		PrivateIPAddress: fmt.Sprintf("10.0.0.%d", n),
	}
	row.ContainerInstanceArn = &arn
	row.Ec2InstanceId = aws.String(id(n))
	row.Status = aws.String("ACTIVE")
	row.Tags = []ecstypes.Tag{{Key: aws.String("team"), Value: aws.String("ml")}}
	for _, a := range [][2]string{{"ecs.instance-type", "g4dn.xlarge"}, {"ecs.availability-zone", "us-east-1a"},
		{"ecs.cpu-architecture", "x86_64"}, {"pintle.node", fmt.Sprintf("node-%d", n)}, {"pintle.gpu", "simulated"}} {
		row.Attributes = append(row.Attributes, ecstypes.Attribute{Name: &a[0], Value: &a[1]})
	}
	return row
}

// service returns a service with instances 1 to n, a node that is no EC2 instance, and one that is gone.
func service(t testing.TB, n int) *Service {
	t.Helper()
	store := statetest.Open(t)
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		for i := range n {
			tx.ContainerInstances.Put(node(i + 1))
		}
		anywhere, gone := node(n+1), node(n+2)
		anywhere.Ec2InstanceId = nil
		gone.Status = aws.String("INACTIVE")
		tx.ContainerInstances.Put(anywhere)
		tx.ContainerInstances.Put(gone)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return New(store, Options{Account: accounttest.New(time.Now)})
}

func ids(out *ec2.DescribeInstancesOutput) []string {
	got := []string{}
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			got = append(got, *i.InstanceId)
		}
	}
	return got
}

func TestInstanceIsTheMachineOfANode(t *testing.T) {
	out, err := service(t, 1).DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	if err != nil || len(out.Reservations) != 1 {
		t.Fatalf("got %+v, %v", out, err)
	}
	i := out.Reservations[0].Instances[0]
	tags := map[string]string{}
	for _, tag := range i.Tags {
		tags[*tag.Key] = *tag.Value
	}
	if i.InstanceType != "g4dn.xlarge" || *i.PrivateIpAddress != "10.0.0.1" || *i.PrivateDnsName != "ip-10-0-0-1.ec2.internal" ||
		i.State.Name != "running" || *i.Placement.AvailabilityZone != "us-east-1a" || i.Architecture != "x86_64" ||
		fmt.Sprint(tags) != "map[Name:node-1 pintle.gpu:simulated team:ml]" {
		t.Errorf("got %+v, tags %v", i, tags)
	}
}

func TestFilters(t *testing.T) {
	s := service(t, 3)
	for _, c := range []struct {
		name   string
		filter string
		values []string
		want   []string
	}{
		{"an id", "instance-id", []string{id(2)}, []string{id(2)}},
		{"one of two", "private-ip-address", []string{"10.0.0.1", "10.0.0.3"}, []string{id(1), id(3)}},
		{"all", "instance-state-name", []string{"running"}, []string{id(1), id(2), id(3)}},
		{"none", "instance-state-name", []string{"Running"}, []string{}},
		{"a tag", "tag:Name", []string{"node-3"}, []string{id(3)}},
		{"a tag's key", "tag-key", []string{"nowhere"}, []string{}},
		{"any text", "tag:Name", []string{"node-*"}, []string{id(1), id(2), id(3)}},
		{"any character", "instance-type", []string{"g4d?.xlarge"}, []string{id(1), id(2), id(3)}},
		{"no class", "tag:Name", []string{"node-[12]"}, []string{}},
	} {
		out, err := s.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{{
			Name:   &c.filter,
			Values: c.values,
		}}})
		if err != nil || !slices.Equal(ids(out), c.want) {
			t.Errorf("%s: got %v, %v", c.name, ids(out), err)
		}
	}
}

// TestPattern checks wildcards: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html
func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern string
		value   string
		want    bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "a\nb", true},
		{"a*c", "abbc", true},
		{"a*c", "a/b/c", true},
		{"a?c", "a/c", true},
		{"a?c", "ac", true},
		{"a?c", "abbc", false},
		{"a", "A", false},
		{`a\*c`, "a*c", true},
		{`a\*c`, "abc", false},
		{`\*amazon\?\\`, `*amazon?\`, true},
		{`\*amazon\?\\`, `*amazon?`, false},
		{"a[b]c", "a[b]c", true},
		{"a[b]c", "abc", false},
		{`a\[b]c`, "a[b]c", true},
		{`a\[b]c`, "abc", false},
		{`a\[b]c`, `a\bc`, false},
		{"a.c|d$", "a.c|d$", true},
		{"a.c", "abc", false},
		{`\a`, "a", true},
		{`a\`, "a", true}, // it has nothing to escape
		{"é?", "éé", true},
	} {
		if got := wildcards(c.pattern).MatchString(c.value); got != c.want {
			t.Errorf("%q fits %q: %v", c.value, c.pattern, got)
		}
	}
}

func TestRefusals(t *testing.T) {
	s := service(t, 2)
	for _, c := range []struct {
		name    string
		code    string
		message string
		in      ec2.DescribeInstancesInput
	}{
		{"no id", "InvalidInstanceID.Malformed", `Invalid id: "mine"`, ec2.DescribeInstancesInput{InstanceIds: []string{"mine"}}},
		{"one unknown", "InvalidInstanceID.NotFound", "The instance ID '" + id(9) + "' does not exist",
			ec2.DescribeInstancesInput{InstanceIds: []string{id(1), id(9)}}},
		{"two unknown", "InvalidInstanceID.NotFound", "The instance IDs '" + id(8) + ", " + id(9) + "' do not exist",
			ec2.DescribeInstancesInput{InstanceIds: []string{id(8), id(9)}}},
		{"one that is gone", "InvalidInstanceID.NotFound", "The instance ID '" + id(4) + "' does not exist",
			ec2.DescribeInstancesInput{InstanceIds: []string{id(4)}}},
		{"a filter that there is not", "InvalidParameterValue", "The filter 'colour' is invalid",
			ec2.DescribeInstancesInput{Filters: []types.Filter{{
				Name:   aws.String("colour"),
				Values: []string{"red"},
			}}}},
		{"a filter of nothing", "InvalidParameterValue", "The filter 'instance-id' must have at least one value",
			ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: aws.String("instance-id")}}}},
		{"many filters", "FilterLimitExceeded", "The maximum number of filters specified on a single call is 50",
			ec2.DescribeInstancesInput{Filters: make([]types.Filter, 51)}},
		{"many values", "FilterLimitExceeded", "The maximum number of filter values specified on a single call is 200",
			ec2.DescribeInstancesInput{Filters: []types.Filter{{
				Name:   aws.String("instance-id"),
				Values: make([]string, 201),
			}}}},
		{"a long value", "InvalidParameterValue", "A value of the filter 'instance-id' has more than 255 characters",
			ec2.DescribeInstancesInput{Filters: []types.Filter{{
				Name:   aws.String("instance-id"),
				Values: []string{strings.Repeat("?", 256)},
			}}}},
		{"a small page", "InvalidParameterValue",
			"Value ( 4 ) for parameter maxResults is invalid. Expecting a value greater than 5.",
			ec2.DescribeInstancesInput{MaxResults: aws.Int32(4)}},
		{"pages of ids", "InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults",
			ec2.DescribeInstancesInput{
				InstanceIds: []string{id(1)},
				MaxResults:  aws.Int32(5),
			}},
		{"a token of one's own", "InvalidNextToken", "The specified NextToken is not one that this operation returned",
			ec2.DescribeInstancesInput{NextToken: aws.String("x")}},
		{"a dry run", "DryRunOperation", "Request would have succeeded, but DryRun flag is set.",
			ec2.DescribeInstancesInput{DryRun: aws.Bool(true)}},
	} {
		_, err := s.DescribeInstances(t.Context(), &c.in)
		var api smithy.APIError
		if !errors.As(err, &api) || api.ErrorCode() != c.code || api.ErrorMessage() != c.message {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

// TestPages follows the tokens through any number of instances with pages of any size.
func TestPages(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		all := make([]int, rapid.IntRange(0, 40).Draw(r, "all"))
		for i := range all {
			all[i] = i
		}
		size := rapid.Int32Range(minPage, 50).Draw(r, "size")
		var got []int
		var token *string
		for {
			some, next, err := account.Sorted(listing("DescribeInstances", 50), all, &size, token, func(i int) string { return id(i) })
			if err != nil {
				r.Fatal(err)
			}
			if got = append(got, some...); next == nil {
				break
			}
			token = next
		}
		if !slices.Equal(got, all) {
			r.Fatalf("got %v of %v", got, all)
		}
	})
}

// TestSmallestPages: launch templates come in pages of one, instances don't.
func TestSmallestPages(t *testing.T) {
	s := New(statetest.Open(t), Options{})
	one := aws.Int32(1)
	if _, err := s.DescribeLaunchTemplates(t.Context(), &ec2.DescribeLaunchTemplatesInput{MaxResults: one}); err != nil {
		t.Error(err)
	}
	if _, err := s.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{MaxResults: one}); err == nil {
		t.Error("instances come in pages of one")
	}
}

func TestInstanceTypes(t *testing.T) {
	s := New(nil, Options{})
	out, err := s.DescribeInstanceTypes(context.Background(),
		&ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"p3.16xlarge", "c5.large"}})
	if err != nil || len(out.InstanceTypes) != 2 {
		t.Fatalf("got %+v, %v", out, err)
	}
	if c5 := out.InstanceTypes[0]; c5.InstanceType != "c5.large" || c5.GpuInfo != nil || *c5.VCpuInfo.DefaultVCpus != 2 ||
		*c5.MemoryInfo.SizeInMiB != 4096 {
		t.Errorf("got %+v", c5)
	}
	if g := out.InstanceTypes[1].GpuInfo.Gpus[0]; *g.Name != "V100" || *g.Count != 8 || *g.MemoryInfo.SizeInMiB != 16384 {
		t.Errorf("got %+v", g)
	}
	_, err = s.DescribeInstanceTypes(context.Background(),
		&ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"p3.16xlarge", "z9.huge"}})
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "InvalidInstanceType" {
		t.Errorf("got %v", err)
	}
	out, err = s.DescribeInstanceTypes(context.Background(), &ec2.DescribeInstanceTypesInput{Filters: []types.Filter{{
		Name:   aws.String("instance-type"),
		Values: []string{"g4dn.*"},
	}}})
	if err != nil || len(out.InstanceTypes) != 7 || out.NextToken != nil {
		t.Errorf("got %+v, %v", out, err)
	}
}
