package ec2

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ec2/volumesize"
	"github.com/pintle/pintle/internal/state"
)

// maxVolumes is how many volumes there are. AWS has 100,000 snapshots and bounds volumes by their sizes.
const maxVolumes = 10_000

var volumes = kind[state.Volume]{
	name:   types.ResourceTypeVolume,
	prefix: "vol",
	code:   "InvalidVolume.NotFound",
	text:   "The volume '%s' does not exist.",
	table:  func(v *state.View) state.Table[*state.Volume] { return v.Volumes },
	of:     func(r *state.Volume) (*string, *[]types.Tag) { return r.VolumeId, &r.Tags },
}

// volumeTags are the tags of volumes that were created. Of those that instances came with nobody keeps any.
type volumeTags struct{ kind[state.Volume] }

func (k volumeTags) retag(tx *state.Tx, id string, change func([]types.Tag) []types.Tag) error {
	if i, _ := ownedBy(tx.View, id); i != nil {
		return refuse("UnsupportedOperation", "The volume '%s' came with instance '%s': Pintle keeps no tags of it.", id, *i.InstanceId)
	}
	return k.kind.retag(tx, id, change)
}

// volumeFields holds those filters of API_DescribeVolumes that apply to what we store.
var volumeFields = fields[types.Volume]{
	"attachment.attach-time": ofAttachments(func(a *types.VolumeAttachment) string { return a.AttachTime.UTC().Format(time.RFC3339) }),
	"attachment.delete-on-termination": ofAttachments(func(a *types.VolumeAttachment) string {
		return yes(a.DeleteOnTermination)[0]
	}),
	"attachment.device":      ofAttachments(func(a *types.VolumeAttachment) string { return *a.Device }),
	"attachment.instance-id": ofAttachments(func(a *types.VolumeAttachment) string { return *a.InstanceId }),
	"attachment.status":      ofAttachments(func(a *types.VolumeAttachment) string { return string(a.State) }),
	"availability-zone":      func(v *types.Volume) []string { return optional(v.AvailabilityZone) },
	"availability-zone-id":   func(v *types.Volume) []string { return optional(v.AvailabilityZoneId) },
	"create-time":            func(v *types.Volume) []string { return []string{v.CreateTime.UTC().Format(time.RFC3339)} },
	"encrypted":              func(v *types.Volume) []string { return yes(v.Encrypted) },
	"fast-restored":          func(*types.Volume) []string { return []string{"false"} },
	"multi-attach-enabled":   func(*types.Volume) []string { return []string{"false"} },
	"size":                   func(v *types.Volume) []string { return []string{strconv.Itoa(int(*v.Size))} },
	"snapshot-id":            func(v *types.Volume) []string { return optional(v.SnapshotId) },
	"status":                 func(v *types.Volume) []string { return []string{string(v.State)} },
	"volume-id":              func(v *types.Volume) []string { return optional(v.VolumeId) },
	"volume-type":            func(v *types.Volume) []string { return []string{string(v.VolumeType)} },
}

// ofAttachments returns what a filter on a volume's attachments looks at.
func ofAttachments(of func(*types.VolumeAttachment) string) func(*types.Volume) []string {
	return func(v *types.Volume) []string {
		return values(v.Attachments, func(a *types.VolumeAttachment) *string { return new(of(a)) })
	}
}

// volumeIDs matches the ids that EC2 accepts.
var volumeIDs = regexp.MustCompile(`^vol-([0-9a-f]{8}|[0-9a-f]{17})$`)

func checkVolumeIDs(ids ...string) error {
	for _, id := range ids {
		if !volumeIDs.MatchString(id) {
			return refuse("InvalidParameterValue", "Value (%s) for parameter volumeId is invalid. Expected: 'vol-...'.", id)
		}
	}
	return nil
}

// CreateVolume creates a volume, which is available at once. It's a record: no machine gets a disk by it.
func (s *Service) CreateVolume(ctx context.Context, in *ec2.CreateVolumeInput) (*ec2.CreateVolumeOutput, error) {
	err := checkVolumeMembers(in, "AvailabilityZone", "AvailabilityZoneId", "ClientToken", "Encrypted", "Iops", "KmsKeyId", "Size", "SnapshotId",
		"TagSpecifications", "Throughput", "VolumeType")
	if err != nil {
		return nil, err
	}
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeVolume)
	if err != nil {
		return nil, err
	}
	if in.SnapshotId != nil {
		return nil, refuse("InvalidSnapshot.NotFound", "The snapshot '%s' does not exist.", *in.SnapshotId)
	}
	if in.KmsKeyId != nil && !aws.ToBool(in.Encrypted) {
		return nil, refuse("InvalidParameterDependency", "The parameter [KmsKeyId] requires the parameter Encrypted to be set.")
	}
	made, err := newVolume(volumesize.Size{Type: in.VolumeType, GiB: in.Size, IOPS: in.Iops, Throughput: in.Throughput}, tags)
	if err != nil {
		return nil, err
	}
	if made.AvailabilityZone, made.AvailabilityZoneId, err = s.volumeZone(in.AvailabilityZone, in.AvailabilityZoneId); err != nil {
		return nil, err
	}
	made.Encrypted, made.KmsKeyId, made.CreateTime = aws.Bool(aws.ToBool(in.Encrypted)), in.KmsKeyId, new(s.now())
	var row *state.Volume
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		row, err = putOnce(s, tx, volumes, in.ClientToken, in, made, func() error {
			return checkRoom(tx.Volumes.Len(), maxVolumes, "VolumeLimitExceeded", "volumes")
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	v := row.Volume
	return &ec2.CreateVolumeOutput{
		Attachments:        []types.VolumeAttachment{},
		AvailabilityZone:   v.AvailabilityZone,
		AvailabilityZoneId: v.AvailabilityZoneId,
		CreateTime:         v.CreateTime,
		Encrypted:          v.Encrypted,
		Iops:               v.Iops,
		KmsKeyId:           v.KmsKeyId,
		MultiAttachEnabled: v.MultiAttachEnabled,
		Size:               v.Size,
		SnapshotId:         v.SnapshotId,
		State:              types.VolumeStateCreating,
		Tags:               v.Tags,
		Throughput:         v.Throughput,
		VolumeId:           v.VolumeId,
		VolumeType:         v.VolumeType,
	}, nil
}

// newVolume returns a volume that nothing has yet.
func newVolume(asked volumesize.Size, tags []types.Tag) (*state.Volume, error) {
	is, err := checkedSize(asked)
	if err != nil {
		return nil, err
	}
	return &state.Volume{Volume: types.Volume{
		VolumeId:           new(state.NewEC2ID("vol")),
		Attachments:        []types.VolumeAttachment{},
		MultiAttachEnabled: aws.Bool(false),
		SnapshotId:         aws.String(""),
		State:              types.VolumeStateAvailable,
		VolumeType:         is.Type,
		Size:               is.GiB,
		Iops:               is.IOPS,
		Throughput:         is.Throughput,
		Tags:               tags,
	}}, nil
}

// checkVolumeMembers refuses what a call asks for besides the members that Pintle knows.
func checkVolumeMembers(in any, known ...string) error {
	if name := asked(reflect.ValueOf(in).Elem(), append(known, "DryRun", "ResultMetadata")); name != "" {
		return refuse("UnsupportedOperation", "%s: Pintle's volumes don't have this.", name)
	}
	return nil
}

// volumeZone returns the zone of a new volume, by its name or by its id. A machine's zone may have any name.
func (s *Service) volumeZone(name, id *string) (zone, zoneID *string, err error) {
	if aws.ToString(name) == "" && aws.ToString(id) == "" {
		return nil, nil, missing("AvailabilityZone")
	}
	all := s.zones()
	i := slices.IndexFunc(all, func(z types.AvailabilityZone) bool {
		return (name == nil || *z.ZoneName == *name) && (id == nil || *z.ZoneId == *id)
	})
	switch {
	case i >= 0:
		return all[i].ZoneName, all[i].ZoneId, nil
	case id != nil || s.opts.IsForeignZone(*name):
		return nil, nil, refuse("InvalidZone.NotFound", "The zone '%s' does not exist.", *cmp.Or(name, id))
	}
	return name, nil, nil
}

// showVolume returns a volume with what it's attached to now: an instance that has ended has none.
func showVolume(v *state.View, r *state.Volume) types.Volume {
	out := r.Volume
	if r.Managed != nil {
		return showManaged(v, r)
	}
	if at := v.Instances.Get(r.AttachedTo()); at == nil || at.IsOver() {
		out.Attachments = []types.VolumeAttachment{}
		out.State = types.VolumeStateAvailable
	}
	return out
}

// showManaged returns a volume that ECS has made, which its task has until it is STOPPED. One whose node has gone was lost with it.
func showManaged(v *state.View, r *state.Volume) types.Volume {
	out := r.Volume
	if v.HasVolume(r) {
		return out
	}
	out.Attachments = []types.VolumeAttachment{}
	switch {
	case r.Managed.Deleted:
		out.State = types.VolumeStateDeleting
	case !v.HasNode(r):
		out.State = types.VolumeStateError
	default:
		out.State = types.VolumeStateAvailable
	}
	return out
}

// DescribeVolumes describes volumes, also those that instances came with.
func (s *Service) DescribeVolumes(_ context.Context, in *ec2.DescribeVolumesInput) (*ec2.DescribeVolumesOutput, error) {
	if err := checkVolumeIDs(in.VolumeIds...); err != nil {
		return nil, err
	}
	if len(in.VolumeIds) > 0 && in.MaxResults != nil {
		return nil, refuse("InvalidParameterCombination", "The parameter volumesSet cannot be used with the parameter maxResults")
	}
	match, err := matcher(in.Filters, volumeFields, func(v *types.Volume) []types.Tag { return v.Tags })
	if err != nil {
		return nil, err
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	v := s.store.View()
	all := allVolumes(v)
	for _, id := range in.VolumeIds {
		if !slices.ContainsFunc(all, func(v types.Volume) bool { return *v.VolumeId == id }) {
			return nil, volumes.absent(id)
		}
	}
	all = slices.DeleteFunc(all, func(v types.Volume) bool {
		return len(in.VolumeIds) > 0 && !slices.Contains(in.VolumeIds, *v.VolumeId) || !match(&v)
	})
	all, next, err := account.Sorted(listing("DescribeVolumes", maxNetworkPage), all, in.MaxResults, in.NextToken,
		func(v types.Volume) string { return *v.VolumeId })
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeVolumesOutput{Volumes: append([]types.Volume{}, all...), NextToken: next}, nil
}

// allVolumes returns the volumes that were created, and those that instances came with.
func allVolumes(v *state.View) (all []types.Volume) {
	for row := range v.Volumes.All() {
		if !v.IsVolumeOver(row) {
			all = append(all, showVolume(v, row))
		}
	}
	for i := range v.Instances.All() {
		all = append(all, ownVolumes(i)...)
	}
	return all
}

// ownedBy returns the instance that came with a volume, and the volume, or nil.
func ownedBy(v *state.View, id string) (*state.Instance, *types.Volume) {
	if v.Volumes.Get(id) != nil {
		return nil, nil
	}
	for i := range v.Instances.All() {
		for _, own := range ownVolumes(i) {
			if *own.VolumeId == id {
				return i, &own
			}
		}
	}
	return nil, nil
}

// findVolume returns a volume that was created. One that an instance came with is refused: it stays as it is until the instance ends.
func findVolume(v *state.View, id *string) (*state.Volume, error) {
	if err := checkVolumeIDs(aws.ToString(id)); id != nil && err != nil {
		return nil, err
	}
	row, err := volumes.get(v, id, "VolumeId")
	switch {
	case err == nil && v.IsVolumeOver(row):
		return nil, volumes.absent(*id)
	case err == nil || id == nil:
		return row, err
	}
	if i, own := ownedBy(v, *id); i != nil {
		return nil, refuse("OperationNotPermitted", "The volume '%s' came with instance '%s' as device '%s', and goes with it.",
			*id, *i.InstanceId, *own.Attachments[0].Device)
	}
	return nil, err
}

// findFreeVolume returns a volume that was created by itself, which may be attached and changed.
func findFreeVolume(v *state.View, id *string) (*state.Volume, error) {
	row, err := findVolume(v, id)
	if err == nil && row.Managed != nil {
		return nil, refuse("OperationNotPermitted", "The volume '%s' was made by Amazon ECS for task '%s': it can only be deleted.",
			*id, row.Managed.TaskArn)
	}
	return row, err
}

// DeleteVolume deletes a volume that isn't attached. What ECS has made lies on a node, which is told.
func (s *Service) DeleteVolume(ctx context.Context, in *ec2.DeleteVolumeInput) (*ec2.DeleteVolumeOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		if i, _ := ownedBy(tx.View, aws.ToString(in.VolumeId)); i != nil {
			return volumeInUse(*in.VolumeId, *i.InstanceId)
		}
		row, err := findVolume(tx.View, in.VolumeId)
		if err != nil {
			return err
		}
		if shown := showVolume(tx.View, row); len(shown.Attachments) > 0 {
			return volumeInUse(*row.VolumeId, row.AttachedTo())
		}
		if row.Managed != nil && tx.HasNode(row) {
			tx.Volumes.Put(row.Deleted())
			return nil
		}
		tx.Volumes.Delete(*row.VolumeId)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteVolumeOutput{}, nil
}

func volumeInUse(id, instance string) error {
	return refuse("VolumeInUse", "Volume %s is currently attached to %s", id, instance)
}

// checkedSize returns a size with what isn't given, or why there's no such volume.
func checkedSize(asked volumesize.Size) (volumesize.Size, error) {
	is, err := asked.Checked()
	if r, ok := errors.AsType[*volumesize.Refusal](err); ok {
		return is, refuse(r.Code, "%s", r.Text)
	}
	return is, err
}
