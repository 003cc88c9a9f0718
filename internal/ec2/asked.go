package ec2

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// runMembers are the members of RunInstances that Pintle honours or keeps.
var runMembers = []string{
	"MaxCount", "MinCount", "BlockDeviceMappings", "ClientToken", "DryRun", "IamInstanceProfile", "ImageId", "InstanceType", "KeyName", "LaunchTemplate", "MetadataOptions",
	"Placement",
	"SecurityGroupIds", "SecurityGroups", "SubnetId", "TagSpecifications", "UserData",
}

// ebsMembers are the members of an EBS volume of RunInstances that Pintle keeps or checks.
var ebsMembers = []string{
	"DeleteOnTermination", "Encrypted", "Iops", "KmsKeyId", "SnapshotId", "Throughput", "VolumeSize", "VolumeType",
}

// checkAsked refuses what a call asks for and would not get.
func checkAsked(in *ec2.RunInstancesInput) error {
	if name := asked(reflect.ValueOf(*in), runMembers); name != "" {
		return refuse("UnsupportedOperation", "%s: Pintle's instances are machines as they are, so it can't be set.", name)
	}
	if in.Placement == nil {
		return nil
	}
	if name := asked(reflect.ValueOf(*in.Placement), []string{"AvailabilityZone", "Tenancy"}); name != "" {
		return refuse("UnsupportedOperation", "Placement.%s: Pintle places instances by zone only.", name)
	}
	if t := cmp.Or(in.Placement.Tenancy, types.TenancyDefault); t != types.TenancyDefault {
		return refuse("UnsupportedOperation", "Placement.Tenancy: Pintle's instances have the tenancy default, not %q.", t)
	}
	return nil
}

// asked returns a member of a struct that asks for something, besides the known ones, or "".
func asked(v reflect.Value, known []string) string {
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.IsExported() && !slices.Contains(known, f.Name) && asks(v.FieldByIndex(f.Index)) {
			return f.Name
		}
	}
	return ""
}

// asks reports whether a value asks for something. What is off or empty, such as {"Enabled": false}, "" or 0, doesn't.
func asks(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return asks(v.Elem())
	case reflect.Slice:
		return v.Len() > 0
	case reflect.Struct:
		return asked(v, nil) != ""
	}
	return v.IsValid() && !v.IsZero()
}

// given returns a value that a call gives, or nil: EC2 takes an empty one for none.
func given(value *string) *string {
	if aws.ToString(value) == "" {
		return nil
	}
	return value
}

// mapDevices puts the devices that a call gives in the place of a launch template's with the same names, and behind them.
func mapDevices(data *types.ResponseLaunchTemplateData, in *ec2.RunInstancesInput) error {
	data.BlockDeviceMappings = slices.Clone(data.BlockDeviceMappings)
	for _, m := range in.BlockDeviceMappings {
		if aws.ToString(m.DeviceName) == "" {
			return refuse("MissingParameter", "The request must contain the parameter BlockDeviceMapping.DeviceName")
		}
		d := types.LaunchTemplateBlockDeviceMapping{DeviceName: m.DeviceName, NoDevice: m.NoDevice, VirtualName: m.VirtualName}
		if e := m.Ebs; e != nil {
			if name := asked(reflect.ValueOf(*e), ebsMembers); name != "" {
				return refuse("UnsupportedOperation", "BlockDeviceMapping.Ebs.%s: Pintle's volumes don't have it.", name)
			}
			if e.SnapshotId != nil {
				return refuse("InvalidSnapshot.NotFound", "The snapshot '%s' does not exist.", *e.SnapshotId)
			}
			d.Ebs = &types.LaunchTemplateEbsBlockDevice{
				DeleteOnTermination: e.DeleteOnTermination,
				Encrypted:           e.Encrypted,
				Iops:                e.Iops,
				KmsKeyId:            e.KmsKeyId,
				Throughput:          e.Throughput,
				VolumeSize:          e.VolumeSize,
				VolumeType:          e.VolumeType,
			}
			if _, err := checkedSize(sizeOf(d.Ebs)); err != nil {
				return err
			}
		}
		isSame := func(d types.LaunchTemplateBlockDeviceMapping) bool {
			return aws.ToString(d.DeviceName) == *m.DeviceName
		}
		data.BlockDeviceMappings = append(slices.DeleteFunc(data.BlockDeviceMappings, isSame), d)
	}
	return nil
}

// checkValue refuses a value of an enum that there isn't. "" is what was left out.
func checkValue[T ~string](parameter string, value T, known []T) error {
	if value == "" || slices.Contains(known, value) {
		return nil
	}
	return refuse("InvalidParameterValue", "Value (%s) for parameter %s is invalid.", string(value), parameter)
}

// enumValues are the values of enums in launch templates, by their types, also of what Pintle's instances take no notice of.
var enumValues = map[string]string{
	"AmdSevSnpSpecification":                      "enabled disabled",
	"CapacityReservationPreference":               "capacity-reservations-only open none",
	"HostnameType":                                "ip-name resource-name",
	"InstanceBandwidthWeighting":                  "default vpc-1 ebs-1",
	"InstanceInterruptionBehavior":                "hibernate stop terminate",
	"LaunchTemplateAutoRecoveryState":             "default disabled",
	"LaunchTemplateHttpTokensState":               "optional required",
	"LaunchTemplateInstanceMetadataEndpointState": "disabled enabled",
	"LaunchTemplateInstanceMetadataProtocolIpv6":  "disabled enabled",
	"LaunchTemplateInstanceMetadataTagsState":     "disabled enabled",
	"NestedVirtualizationSpecification":           "enabled disabled",
	"SecondaryInterfaceType":                      "secondary",
	"ShutdownBehavior":                            "stop terminate",
	"SpotInstanceType":                            "one-time persistent",
	"Tenancy":                                     "default dedicated host",
	"VolumeType":                                  "standard io1 io2 gp2 sc1 st1 gp3",
}

// checkEnums refuses a value within a launch template that its enum doesn't have. "" is what was left out.
func checkEnums(at string, v reflect.Value) (err error) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return checkEnums(at, v.Elem())
		}
	case reflect.Slice:
		for i := 0; i < v.Len() && err == nil; i++ {
			err = checkEnums(at, v.Index(i))
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && err == nil; i++ {
			err = checkEnums(at+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.String:
		if values := enumValues[v.Type().Name()]; values != "" {
			return checkValue(at[1:], v.String(), strings.Fields(values))
		}
	}
	return err
}

// asTemplate returns the network and the role that a call gives, in a launch template's form, where they replace the template's.
func asTemplate(data *types.ResponseLaunchTemplateData, in *ec2.RunInstancesInput) {
	if p := in.IamInstanceProfile; p != nil {
		data.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecification{Arn: p.Arn, Name: p.Name}
	}
	if o := in.MetadataOptions; o != nil {
		data.MetadataOptions = &types.LaunchTemplateInstanceMetadataOptions{
			HttpEndpoint:            types.LaunchTemplateInstanceMetadataEndpointState(o.HttpEndpoint),
			HttpProtocolIpv6:        types.LaunchTemplateInstanceMetadataProtocolIpv6(o.HttpProtocolIpv6),
			HttpPutResponseHopLimit: o.HttpPutResponseHopLimit,
			HttpTokens:              types.LaunchTemplateHttpTokensState(o.HttpTokens),
			InstanceMetadataTags:    types.LaunchTemplateInstanceMetadataTagsState(o.InstanceMetadataTags),
		}
	}
	if len(in.SecurityGroupIds)+len(in.SecurityGroups) > 0 {
		data.SecurityGroupIds = in.SecurityGroupIds
		data.SecurityGroups = in.SecurityGroups
	}
	if in.SubnetId != nil {
		data.NetworkInterfaces = []types.LaunchTemplateInstanceNetworkInterfaceSpecification{{
			DeviceIndex: aws.Int32(0),
			SubnetId:    in.SubnetId,
		}}
	}
}
