package stacks

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Late is what CloudFormation finds out about a new stack only once it's there: the call succeeds, and the stack is rolled back before it has
// a resource.
type Late struct{ Message string }

func (l *Late) Error() string { return l.Message }

// describe asks EC2 for something by its name or ID. It's an error if there is none.
type describe func(ctx context.Context, services call.Caller, value string) error

// asking returns how the operation with an input is asked for one value.
func asking[Out, In any](input func(values []string) *In) describe {
	return func(ctx context.Context, services call.Caller, value string) error {
		_, err := call.Do[Out](ctx, services, input([]string{value}))
		return err
	}
}

// existing are the types of parameters of which there must be what the values name.
var existing = map[string]describe{
	"AWS::EC2::AvailabilityZone::Name": asking[ec2.DescribeAvailabilityZonesOutput](func(v []string) *ec2.DescribeAvailabilityZonesInput {
		return &ec2.DescribeAvailabilityZonesInput{ZoneNames: v}
	}),
	"AWS::EC2::Instance::Id": asking[ec2.DescribeInstancesOutput](func(v []string) *ec2.DescribeInstancesInput {
		return &ec2.DescribeInstancesInput{InstanceIds: v}
	}),
	"AWS::EC2::KeyPair::KeyName": asking[ec2.DescribeKeyPairsOutput](func(v []string) *ec2.DescribeKeyPairsInput {
		return &ec2.DescribeKeyPairsInput{KeyNames: v}
	}),
	"AWS::EC2::SecurityGroup::GroupName": asking[ec2.DescribeSecurityGroupsOutput](func(v []string) *ec2.DescribeSecurityGroupsInput {
		return &ec2.DescribeSecurityGroupsInput{GroupNames: v}
	}),
	"AWS::EC2::SecurityGroup::Id": asking[ec2.DescribeSecurityGroupsOutput](func(v []string) *ec2.DescribeSecurityGroupsInput {
		return &ec2.DescribeSecurityGroupsInput{GroupIds: v}
	}),
	"AWS::EC2::Subnet::Id": asking[ec2.DescribeSubnetsOutput](func(v []string) *ec2.DescribeSubnetsInput {
		return &ec2.DescribeSubnetsInput{SubnetIds: v}
	}),
	"AWS::EC2::VPC::Id": asking[ec2.DescribeVpcsOutput](func(v []string) *ec2.DescribeVpcsInput {
		return &ec2.DescribeVpcsInput{VpcIds: v}
	}),
}

// checkParameters refuses parameters that name what EC2 hasn't got. Images aren't asked for: fleets have their own.
func (l *Loop) checkParameters(ctx context.Context, src *source) error {
	for i := range src.Parameters {
		p := &src.Parameters[i]
		element, _ := p.Element()
		ask := existing[element]
		if ask == nil || template.HasUnknown(src.values[p.Name]) {
			continue
		}
		items, isList := src.values[p.Name].([]any)
		if !isList {
			items = []any{src.values[p.Name]}
		}
		for _, item := range items {
			value, _ := template.Text(item)
			if err := l.checkExists(ctx, ask, p.Name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkExists refuses a value of a parameter if EC2 hasn't got it.
func (l *Loop) checkExists(ctx context.Context, ask describe, parameter, value string) error {
	var err error
	if value != "" { // EC2 takes an empty list for all
		err = ask(ctx, l.opts.Services, value)
	}
	var refused smithy.APIError
	if value == "" || errors.As(err, &refused) && isUnknownValue(refused.ErrorCode()) {
		return &Late{"Parameter validation failed: parameter value " + value + " for parameter name " + parameter + " does not exist"}
	}
	return err
}

// isUnknownValue reports whether EC2's error says that there is nothing by that name or ID. Without a default VPC no group has a name of its own.
func isUnknownValue(code string) bool {
	return strings.HasPrefix(code, "Invalid") || code == "VPCIdNotSpecified"
}

// refuseExports refuses outputs whose exports another stack has, and those that take from other stacks what they import.
func refuseExports(v *state.View, s *state.Stack, outputs []types.Output) error {
	values := map[string]string{}
	for _, o := range outputs {
		name := aws.ToString(o.ExportName)
		if other, _ := Export(v, name); name != "" && other != nil && *other.StackId != *s.StackId {
			return template.Errorf("Export with name %s is already exported by stack %s", name, *other.StackName)
		}
		values[name] = *o.OutputValue
	}
	for _, o := range s.Outputs {
		if o.ExportName == nil {
			continue
		}
		users := strings.Join(Importers(v, *o.ExportName), ", ")
		value, stays := values[*o.ExportName]
		switch {
		case users == "" || stays && value == *o.OutputValue:
		case stays:
			return template.Errorf("Update canceled. Cannot update export %s as it is in use by %s", *o.ExportName, users)
		default:
			return template.Errorf("Delete canceled. Cannot delete export %s as it is in use by %s", *o.ExportName, users)
		}
	}
	return nil
}
