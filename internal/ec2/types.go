package ec2

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/instancetype"
)

// maxTypes is the most types of one page: API_DescribeInstanceTypes.
const maxTypes = 100

// DescribeInstanceTypes describes the types that Pintle knows: their CPUs, memory and GPUs.
func (s *Service) DescribeInstanceTypes(_ context.Context, in *ec2.DescribeInstanceTypesInput) (*ec2.DescribeInstanceTypesOutput, error) {
	if len(in.InstanceTypes) > 0 && in.MaxResults != nil {
		return nil, refuse("InvalidParameterCombination", "The parameter instanceTypes cannot be used with the parameter maxResults")
	}
	match, err := matcher(in.Filters, typeFields, nil)
	if err != nil {
		return nil, err
	}
	wanted, err := instanceTypes(in.InstanceTypes)
	if err != nil {
		return nil, err
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	wanted = slices.DeleteFunc(wanted, func(t types.InstanceTypeInfo) bool { return !match(&t) })
	wanted, next, err := account.Sorted(listing("DescribeInstanceTypes", maxTypes), wanted, in.MaxResults, in.NextToken,
		func(t types.InstanceTypeInfo) string { return string(t.InstanceType) })
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeInstanceTypesOutput{InstanceTypes: wanted, NextToken: next}, nil
}

// instanceTypes returns the types with the names, or all types if no names are given, sorted by name.
func instanceTypes(names []types.InstanceType) ([]types.InstanceTypeInfo, error) {
	out := []types.InstanceTypeInfo{}
	for _, t := range instancetype.All() {
		if len(names) == 0 || slices.Contains(names, types.InstanceType(t.Name)) {
			out = append(out, describeType(t))
		}
	}
	var missing []string
	for _, name := range names {
		if _, err := instancetype.Lookup(string(name)); err != nil {
			missing = append(missing, string(name))
		}
	}
	if len(missing) > 0 {
		return nil, refuse("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", strings.Join(missing, ", "))
	}
	account.SortBy(out, func(t types.InstanceTypeInfo) types.InstanceType { return t.InstanceType })
	return out, nil
}

func describeType(t instancetype.Type) types.InstanceTypeInfo {
	i := types.InstanceTypeInfo{
		InstanceType: types.InstanceType(t.Name),
		VCpuInfo:     &types.VCpuInfo{DefaultVCpus: aws.Int32(int32(t.VCPUs))},
		MemoryInfo:   &types.MemoryInfo{SizeInMiB: &t.MemoryMiB},
	}
	if t.GPUs == 0 {
		return i
	}
	i.GpuInfo = &types.GpuInfo{TotalGpuMemoryInMiB: aws.Int32(int32(t.GPUMemMiB) * int32(t.GPUs)), Gpus: []types.GpuDeviceInfo{{
		Manufacturer: aws.String("NVIDIA"),
		Name:         new(gpuName(t.GPUModel)),
		Count:        aws.Int32(int32(t.GPUs)),
		MemoryInfo:   &types.GpuDeviceMemoryInfo{SizeInMiB: aws.Int32(int32(t.GPUMemMiB))},
	}}}
	return i
}

// gpuName returns a GPU's name as EC2 shows it: V100 for NVML's Tesla V100-SXM2-16GB.
func gpuName(model string) string {
	for _, maker := range []string{"NVIDIA ", "Tesla "} {
		model = strings.TrimPrefix(model, maker)
	}
	if i := strings.IndexAny(model, "- "); i >= 0 {
		model = model[:i]
	}
	return model
}

// typeFields holds those filters of API_DescribeInstanceTypes that apply to what we know.
var typeFields = fields[types.InstanceTypeInfo]{
	"instance-type": func(t *types.InstanceTypeInfo) []string { return []string{string(t.InstanceType)} },
	"memory-info.size-in-mib": func(t *types.InstanceTypeInfo) []string {
		return []string{strconv.FormatInt(*t.MemoryInfo.SizeInMiB, 10)}
	},
	"vcpu-info.default-vcpus": func(t *types.InstanceTypeInfo) []string { return []string{strconv.Itoa(int(*t.VCpuInfo.DefaultVCpus))} },
}
