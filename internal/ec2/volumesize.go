package ec2

import (
	"cmp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// volumeSize is how large and how fast a volume is. What isn't given is nil.
type volumeSize struct {
	kind       types.VolumeType
	size       *int32 // GiB
	iops       *int32
	throughput *int32 // MiB/s
}

// volumeLimits are the bounds of a type of volumes: the EBS user guide's "Amazon EBS volume types".
type volumeLimits struct {
	smallest, largest  int32 // GiB
	leastIOPS, maxIOPS int32 // 0 if they can't be chosen
	perGiB             int32 // IOPS of each GiB at most
	maxThroughput      int32 // MiB/s; 0 if it can't be chosen
}

var volumeTypes = map[types.VolumeType]volumeLimits{
	types.VolumeTypeGp2:      {smallest: 1, largest: 16384},
	types.VolumeTypeGp3:      {smallest: 1, largest: 65536, leastIOPS: 3000, maxIOPS: 80000, perGiB: 500, maxThroughput: 2000},
	types.VolumeTypeIo1:      {smallest: 4, largest: 16384, leastIOPS: 100, maxIOPS: 64000, perGiB: 50},
	types.VolumeTypeIo2:      {smallest: 4, largest: 65536, leastIOPS: 100, maxIOPS: 256000, perGiB: 1000},
	types.VolumeTypeSc1:      {smallest: 125, largest: 16384},
	types.VolumeTypeSt1:      {smallest: 125, largest: 16384},
	types.VolumeTypeStandard: {smallest: 1, largest: 1024},
}

// What volumes of type gp3 have without being asked, and what those of type gp2 have by their size.
const (
	gp3IOPS       = 3000
	gp3Throughput = 125
	gp2PerGiB     = 3
	gp2LeastIOPS  = 100
	gp2MaxIOPS    = 16000
)

// checked returns a size with what isn't given, or why there's no such volume.
func (a volumeSize) checked() (volumeSize, error) {
	a.kind = cmp.Or(a.kind, types.VolumeTypeGp2)
	limits, known := volumeTypes[a.kind]
	switch {
	case !known:
		return a, refuse("UnknownVolumeType", "Unknown volume type '%s'.", a.kind)
	case a.size == nil:
		return a, refuse("MissingParameter", "The request must contain the parameter size/snapshot")
	case *a.size < limits.smallest:
		return a, refuse("InvalidParameterValue", "Volume of %dGiB is too small for volume type %s; minimum is %dGiB.",
			*a.size, a.kind, limits.smallest)
	case *a.size > limits.largest:
		return a, refuse("InvalidParameterValue", "Volume of %dGiB is too large for volume type %s; maximum is %dGiB.",
			*a.size, a.kind, limits.largest)
	}
	if err := a.checkSpeed(limits); err != nil {
		return a, err
	}
	switch a.kind {
	case types.VolumeTypeGp2:
		a.iops = aws.Int32(min(max(*a.size*gp2PerGiB, gp2LeastIOPS), gp2MaxIOPS))
	case types.VolumeTypeGp3:
		a.iops, a.throughput = cmp.Or(a.iops, aws.Int32(gp3IOPS)), cmp.Or(a.throughput, aws.Int32(gp3Throughput))
	}
	return a, nil
}

// checkSpeed refuses IOPS and a throughput that a type of volumes hasn't got.
func (a volumeSize) checkSpeed(limits volumeLimits) error {
	switch iops := aws.ToInt32(a.iops); {
	case a.iops == nil && limits.leastIOPS > 0 && a.kind != types.VolumeTypeGp3:
		return refuse("MissingParameter", "The request must contain the parameter iops for %s volumes", a.kind)
	case a.iops == nil:
	case limits.maxIOPS == 0:
		return refuse("InvalidParameterCombination", "The parameter iops is not supported for %s volumes.", a.kind)
	case iops < limits.leastIOPS:
		return refuse("InvalidParameterValue", "Volume iops of %d is too low; minimum is %d.", iops, limits.leastIOPS)
	case iops > limits.maxIOPS:
		return refuse("InvalidParameterValue", "Volume iops of %d is too high; maximum is %d.", iops, limits.maxIOPS)
	case iops > max(*a.size*limits.perGiB, gp3IOPS):
		return refuse("InvalidParameterValue", "Iops to volume size ratio of %.1f is too high; maximum is %d",
			float64(iops)/float64(*a.size), limits.perGiB)
	}
	switch throughput := aws.ToInt32(a.throughput); {
	case a.throughput == nil:
	case limits.maxThroughput == 0:
		return refuse("InvalidParameterCombination", "The parameter throughput is not supported for %s volumes.", a.kind)
	case throughput < gp3Throughput || throughput > limits.maxThroughput:
		return refuse("InvalidParameterValue", "Throughput of %d MiB/s is not between %d and %d.",
			throughput, gp3Throughput, limits.maxThroughput)
	}
	return nil
}
