// Package volumesize knows how large and how fast EBS's volumes may be. EC2 asks it when it makes one, and ECS when a task is to have one. It is
// pure.
package volumesize

import (
	"cmp"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Size is how large and how fast a volume is. What isn't given is nil.
type Size struct {
	Type       types.VolumeType
	GiB        *int32
	IOPS       *int32
	Throughput *int32 // MiB/s
}

// Refusal says why there's no such volume, with EC2's code.
type Refusal struct{ Code, Text string }

func (r *Refusal) Error() string { return r.Text }

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// limits are the bounds of a type of volumes: the EBS user guide's "Amazon EBS volume types".
type limits struct {
	smallest, largest  int32 // GiB
	leastIOPS, maxIOPS int32 // 0 if they can't be chosen
	perGiB             int32 // IOPS of each GiB at most
	maxThroughput      int32 // MiB/s; 0 if it can't be chosen
}

var all = map[types.VolumeType]limits{
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

// Checked returns a size with what isn't given, or why there's no such volume.
func (a Size) Checked() (Size, error) {
	a.Type = cmp.Or(a.Type, types.VolumeTypeGp2)
	l, known := all[a.Type]
	switch {
	case !known:
		return a, refuse("UnknownVolumeType", "Unknown volume type '%s'.", a.Type)
	case a.GiB == nil:
		return a, refuse("MissingParameter", "The request must contain the parameter size/snapshot")
	case *a.GiB < l.smallest:
		return a, refuse("InvalidParameterValue", "Volume of %dGiB is too small for volume type %s; minimum is %dGiB.",
			*a.GiB, a.Type, l.smallest)
	case *a.GiB > l.largest:
		return a, refuse("InvalidParameterValue", "Volume of %dGiB is too large for volume type %s; maximum is %dGiB.",
			*a.GiB, a.Type, l.largest)
	}
	if err := a.checkSpeed(l); err != nil {
		return a, err
	}
	switch a.Type {
	case types.VolumeTypeGp2:
		a.IOPS = aws.Int32(min(max(*a.GiB*gp2PerGiB, gp2LeastIOPS), gp2MaxIOPS))
	case types.VolumeTypeGp3:
		a.IOPS, a.Throughput = cmp.Or(a.IOPS, aws.Int32(gp3IOPS)), cmp.Or(a.Throughput, aws.Int32(gp3Throughput))
	}
	return a, nil
}

// checkSpeed refuses IOPS and a throughput that a type of volumes hasn't got.
func (a Size) checkSpeed(l limits) error {
	switch iops := aws.ToInt32(a.IOPS); {
	case a.IOPS == nil && l.leastIOPS > 0 && a.Type != types.VolumeTypeGp3:
		return refuse("MissingParameter", "The request must contain the parameter iops for %s volumes", a.Type)
	case a.IOPS == nil:
	case l.maxIOPS == 0:
		return refuse("InvalidParameterCombination", "The parameter iops is not supported for %s volumes.", a.Type)
	case iops < l.leastIOPS:
		return refuse("InvalidParameterValue", "Volume iops of %d is too low; minimum is %d.", iops, l.leastIOPS)
	case iops > l.maxIOPS:
		return refuse("InvalidParameterValue", "Volume iops of %d is too high; maximum is %d.", iops, l.maxIOPS)
	case iops > max(*a.GiB*l.perGiB, gp3IOPS):
		return refuse("InvalidParameterValue", "Iops to volume size ratio of %.1f is too high; maximum is %d",
			float64(iops)/float64(*a.GiB), l.perGiB)
	}
	switch throughput := aws.ToInt32(a.Throughput); {
	case a.Throughput == nil:
	case l.maxThroughput == 0:
		return refuse("InvalidParameterCombination", "The parameter throughput is not supported for %s volumes.", a.Type)
	case throughput < gp3Throughput || throughput > l.maxThroughput:
		return refuse("InvalidParameterValue", "Throughput of %d MiB/s is not between %d and %d.",
			throughput, gp3Throughput, l.maxThroughput)
	}
	return nil
}
