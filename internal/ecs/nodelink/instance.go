package nodelink

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2 "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/ec2/dns"
	"github.com/pintle/pintle/internal/state"
)

// sendInstance tells a node of a machine that Pintle launched what it is, when that is news or its role's credentials are half over. A
// node with a key of its own is told nothing: which instance it is, it says itself, and user data and credentials are that one's alone.
func (s *session) sendInstance(ctx context.Context, v *state.View) error {
	if s.ownKey {
		return nil
	}
	m := v.ContainerInstances.Get(s.instance)
	if m.Ec2InstanceId == nil {
		return nil
	}
	i := v.Instances.Get(*m.Ec2InstanceId)
	if i == nil || i.IsOver() {
		return nil
	}
	out := s.describe(v, i)
	profile, role := s.link.profileOf(v, i)
	out.Profile = profile
	encoded, _ := json.Marshal(out) // strings, numbers and times can't fail
	now := s.link.opts.Now()
	if bytes.Equal(encoded, s.machine) && (role == nil || now.Before(s.renewsAt)) {
		return nil
	}
	if role != nil {
		s.grantInstance(out, role, now)
	}
	s.machine = encoded
	return s.send(ctx, out)
}

// grantInstance adds the credentials of an instance's role, and notes when they are half over.
func (s *session) grantInstance(out *acs.PintleInstance, role *state.Role, now time.Time) {
	out.Profile.Credentials = s.link.credentialsOf(out.InstanceID, role)
	out.Profile.UpdatedAt = now
	s.renewsAt = now.Add(minRenewalWait)
	if end, err := time.Parse(time.RFC3339, out.Profile.Credentials.Expiration); err == nil {
		s.renewsAt = now.Add(max(minRenewalWait, end.Sub(now)/2))
	}
}

// profileOf returns an instance's profile without credentials, and the role whose credentials the instance gets. Either may be nil.
func (l *Link) profileOf(v *state.View, i *state.Instance) (*acs.InstanceProfile, *state.Role) {
	name := i.Profile[strings.LastIndexByte(i.Profile, '/')+1:]
	p := v.InstanceProfiles.Get(state.NameKey(name))
	if name == "" || p == nil {
		return nil, nil
	}
	out := &acs.InstanceProfile{
		Arn:  l.opts.Account.GlobalARN("iam", "instance-profile"+p.Path+p.Name),
		ID:   p.ID,
		Role: p.Role,
	}
	role := v.Roles.Get(state.NameKey(p.Role))
	if p.Role == "" || role == nil || l.opts.Instance == nil {
		return out, nil
	}
	return out, role
}

// InstanceCredentials makes credentials of its role for an instance that may not be a node yet: its user data runs before. It returns nil for
// an instance that has no role, or is over.
func (l *Link) InstanceCredentials(instanceID string) *acs.IAMRoleCredentials {
	v := l.store.View()
	i := v.Instances.Get(instanceID)
	if i == nil || i.IsOver() {
		return nil
	}
	_, role := l.profileOf(v, i)
	if role == nil {
		return nil
	}
	return l.credentialsOf(instanceID, role)
}

// credentialsOf makes credentials of its role for an instance.
func (l *Link) credentialsOf(instanceID string, role *state.Role) *acs.IAMRoleCredentials {
	return l.opts.Instance(instanceID, l.opts.Account.GlobalARN("iam", "role"+role.Path+role.Name), role.ID)
}

// describe returns what an instance's metadata service tells, but for its profile.
func (s *session) describe(v *state.View, i *state.Instance) *acs.PintleInstance {
	out := &acs.PintleInstance{
		InstanceID:   *i.InstanceId,
		ImageID:      aws.ToString(i.ImageId),
		InstanceType: string(i.InstanceType),
		Account:      s.link.opts.Account.ID,
		Region:       s.link.opts.Account.Region,
		PrivateIPv4:  aws.ToString(i.PrivateIpAddress),
		Reservation:  i.ReservationID(),
		LaunchIndex:  int(aws.ToInt32(i.AmiLaunchIndex)),
		LaunchedAt:   aws.ToTime(i.LaunchTime),
		UserData:     i.UserData,
		HopLimit:     1,
	}
	if i.Placement != nil {
		out.Zone = aws.ToString(i.Placement.AvailabilityZone)
	}
	if out.PrivateIPv4 != "" {
		out.Hostname = dns.Name(out.PrivateIPv4, out.Region)
	}
	for _, a := range v.ContainerInstances.Get(s.instance).Attributes {
		if aws.ToString(a.Name) == "ecs.cpu-architecture" {
			out.Architecture = aws.ToString(a.Value)
		}
	}
	for _, g := range i.SecurityGroups {
		if row := v.SecurityGroups.Get(aws.ToString(g.GroupId)); row != nil {
			out.SecurityGroups = append(out.SecurityGroups, *row.GroupName)
		}
	}
	if o := i.MetadataOptions; o != nil {
		out.TokensRequired = o.HttpTokens == ec2.HttpTokensStateRequired
		out.Disabled = o.HttpEndpoint == ec2.InstanceMetadataEndpointStateDisabled
		out.HopLimit = int(cmp.Or(aws.ToInt32(o.HttpPutResponseHopLimit), 1))
		if o.InstanceMetadataTags == ec2.InstanceMetadataTagsStateEnabled {
			out.Tags = tagsOf(i)
		}
	}
	return out
}

// tagsOf returns an instance's tags. EC2 takes none with a slash in its key where the metadata service tells them.
func tagsOf(i *state.Instance) map[string]string {
	out := map[string]string{}
	for _, t := range i.Tags {
		if key := aws.ToString(t.Key); !strings.Contains(key, "/") {
			out[key] = aws.ToString(t.Value)
		}
	}
	return out
}
