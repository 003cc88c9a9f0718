package ec2

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

const (
	maxSecurityGroups = 2500 // of a region: the VPC user guide's "Amazon VPC quotas"
	maxGroupText      = 255  // characters of a name or a description: API_CreateSecurityGroup
	defaultGroup      = "default"
)

var securityGroups = kind[state.SecurityGroup]{
	name:   types.ResourceTypeSecurityGroup,
	prefix: "sg",
	code:   "InvalidGroup.NotFound",
	text:   "The security group '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.SecurityGroup] { return v.SecurityGroups },
	of:     func(r *state.SecurityGroup) (*string, *[]types.Tag) { return r.GroupId, &r.Tags },
	fields: fields[state.SecurityGroup]{
		"description": func(r *state.SecurityGroup) []string { return optional(r.Description) },
		"group-id":    func(r *state.SecurityGroup) []string { return optional(r.GroupId) },
		"group-name":  func(r *state.SecurityGroup) []string { return optional(r.GroupName) },
		"owner-id":    func(r *state.SecurityGroup) []string { return optional(r.OwnerId) },
		"vpc-id":      func(r *state.SecurityGroup) []string { return optional(r.VpcId) },
	},
}

// withRules returns the kind with the filters that look at groups' rules.
func withRules(v *state.View) kind[state.SecurityGroup] {
	k := securityGroups
	for prefix, egress := range map[string]bool{"ip-permission.": false, "egress.ip-permission.": true} {
		for name, of := range ruleFields {
			k = k.with(prefix+name, func(r *state.SecurityGroup) (out []string) {
				for rule := range v.SecurityGroupRules.By(state.RulesByGroup, *r.GroupId) {
					if *rule.IsEgress == egress {
						out = append(out, of(&rule.SecurityGroupRule)...)
					}
				}
				return out
			})
		}
	}
	return k
}

func (s *Service) newGroup(vpc, name, description string, tags []types.Tag) *state.SecurityGroup {
	id := state.NewEC2ID("sg")
	return &state.SecurityGroup{SecurityGroup: types.SecurityGroup{
		GroupId:          &id,
		GroupName:        &name,
		Description:      &description,
		OwnerId:          &s.opts.ID,
		SecurityGroupArn: new(s.opts.ARN("ec2", "security-group/"+id)),
		VpcId:            &vpc,
		Tags:             tags,
	}}
}

// putDefaultGroup makes a VPC's default security group, whose members talk to each other and to anybody.
func (s *Service) putDefaultGroup(tx *state.Tx, vpc *state.VPC) {
	row := s.newGroup(*vpc.VpcId, defaultGroup, "default VPC security group", []types.Tag{})
	tx.SecurityGroups.Put(row)
	among := s.newRule(row, allPorts(false))
	among.ReferencedGroupInfo = &types.ReferencedSecurityGroup{GroupId: row.GroupId, UserId: &s.opts.ID}
	tx.SecurityGroupRules.Put(among)
	s.putOpenEgress(tx, row)
}

// putOpenEgress lets a group's members talk to anybody, as those of every new group may.
func (s *Service) putOpenEgress(tx *state.Tx, group *state.SecurityGroup) {
	out := s.newRule(group, allPorts(true))
	out.CidrIpv4 = aws.String("0.0.0.0/0")
	tx.SecurityGroupRules.Put(out)
}

// deleteGroup deletes a group with its rules.
func deleteGroup(tx *state.Tx, id string) {
	for rule := range tx.SecurityGroupRules.By(state.RulesByGroup, id) {
		tx.SecurityGroupRules.Delete(*rule.SecurityGroupRuleId)
	}
	tx.SecurityGroups.Delete(id)
}

// CreateSecurityGroup creates a group. Its members may talk to anybody, and nobody to them.
func (s *Service) CreateSecurityGroup(ctx context.Context, in *ec2.CreateSecurityGroupInput) (*ec2.CreateSecurityGroupOutput, error) {
	name, description := aws.ToString(in.GroupName), aws.ToString(in.Description)
	if err := checkGroupText(name, description); err != nil {
		return nil, err
	}
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeSecurityGroup)
	if err != nil {
		return nil, err
	}
	var row *state.SecurityGroup
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		vpc, err := vpcOrDefault(tx.View, in.VpcId)
		if err != nil {
			return err
		}
		if findGroup(tx.View, *vpc.VpcId, name) != nil {
			return refuse("InvalidGroup.Duplicate", "The security group '%s' already exists for VPC '%s'", name, *vpc.VpcId)
		}
		row = s.newGroup(*vpc.VpcId, name, description, tags)
		tx.SecurityGroups.Put(row)
		s.putOpenEgress(tx, row)
		return checkRoom(count(tx.SecurityGroups.All())-1, maxSecurityGroups, "SecurityGroupLimitExceeded", "security groups")
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateSecurityGroupOutput{GroupId: row.GroupId, SecurityGroupArn: row.SecurityGroupArn, Tags: row.Tags}, nil
}

func checkGroupText(name, description string) error {
	switch {
	case name == "":
		return missing("GroupName")
	case description == "":
		return missing("GroupDescription")
	case name == defaultGroup:
		return refuse("InvalidParameterValue", "Cannot use reserved security group name: %s", name)
	case strings.HasPrefix(name, "sg-"):
		return refuse("InvalidParameterValue", "Invalid value '%s' for groupName. Group names may not be in the format sg-*", name)
	case !isGroupText(name):
		return refuse("InvalidParameterValue", "Value (%s) for parameter GroupName is invalid. Character sets beyond ASCII are not supported.", name)
	case !isGroupText(description):
		return refuse("InvalidParameterValue",
			"Value (%s) for parameter GroupDescription is invalid. Character sets beyond ASCII are not supported.", description)
	}
	return nil
}

// isGroupText reports whether a text may be a name or a description.
func isGroupText(s string) bool {
	return len(s) <= maxGroupText && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// vpcOrDefault returns the VPC with an id, or the default one without.
func vpcOrDefault(v *state.View, id *string) (*state.VPC, error) {
	if aws.ToString(id) != "" {
		return vpcs.get(v, id, "VpcId")
	}
	if vpc := v.DefaultVPC(); vpc != nil {
		return vpc, nil
	}
	return nil, refuse("VPCIdNotSpecified", "No default VPC for this user. GroupName is only supported for EC2-Classic and default VPC.")
}

// findGroup returns a VPC's group with a name, or nil.
func findGroup(v *state.View, vpc, name string) *state.SecurityGroup {
	for g := range v.SecurityGroups.By(state.SecurityGroupsByVPC, vpc) {
		if *g.GroupName == name {
			return g
		}
	}
	return nil
}

// pickGroup returns the group that a call gives by id, or by name in the default VPC.
func pickGroup(v *state.View, id, name *string) (*state.SecurityGroup, error) {
	if id != nil || name == nil {
		return securityGroups.get(v, id, "GroupId")
	}
	vpc, err := vpcOrDefault(v, nil)
	if err != nil {
		return nil, err
	}
	return groupNamed(v, *vpc.VpcId, *name)
}

// groupNamed returns a VPC's group with a name.
func groupNamed(v *state.View, vpc, name string) (*state.SecurityGroup, error) {
	if g := findGroup(v, vpc, name); g != nil {
		return g, nil
	}
	return nil, refuse("InvalidGroup.NotFound", "The security group '%s' does not exist in VPC '%s'", name, vpc)
}

// DescribeSecurityGroups describes groups with their rules.
func (s *Service) DescribeSecurityGroups(
	_ context.Context, in *ec2.DescribeSecurityGroupsInput,
) (*ec2.DescribeSecurityGroupsOutput, error) {
	v := s.store.View()
	ids := slices.Clone(in.GroupIds)
	for _, name := range in.GroupNames {
		g, err := pickGroup(v, nil, &name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, *g.GroupId)
	}
	rows, next, err := withRules(v).describe(v, query{"DescribeSecurityGroups", ids, in.Filters, in.MaxResults, in.NextToken, in.DryRun})
	if err != nil {
		return nil, err
	}
	all := show(rows, func(r *state.SecurityGroup) types.SecurityGroup { return showGroup(v, r) })
	return &ec2.DescribeSecurityGroupsOutput{SecurityGroups: all, NextToken: next}, nil
}

// showGroup returns a group with its rules, joined to permissions.
func showGroup(v *state.View, r *state.SecurityGroup) types.SecurityGroup {
	shown := r.SecurityGroup
	shown.IpPermissions = []types.IpPermission{}
	shown.IpPermissionsEgress = []types.IpPermission{}
	for rule := range v.SecurityGroupRules.By(state.RulesByGroup, *r.GroupId) {
		if *rule.IsEgress {
			shown.IpPermissionsEgress = addPermission(shown.IpPermissionsEgress, &rule.SecurityGroupRule)
		} else {
			shown.IpPermissions = addPermission(shown.IpPermissions, &rule.SecurityGroupRule)
		}
	}
	return shown
}

// DeleteSecurityGroup deletes a group that nothing uses.
func (s *Service) DeleteSecurityGroup(ctx context.Context, in *ec2.DeleteSecurityGroupInput) (*ec2.DeleteSecurityGroupOutput, error) {
	var id *string
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		g, err := pickGroup(tx.View, in.GroupId, in.GroupName)
		if err != nil {
			return err
		}
		id = g.GroupId
		if *g.GroupName == defaultGroup {
			return refuse("CannotDelete", "the specified group: \"%s\" name: \"%s\" cannot be deleted by a user", *id, *g.GroupName)
		}
		if groupInUse(tx.View, *id) {
			return refuse("DependencyViolation", "resource %s has a dependent object", *id)
		}
		deleteGroup(tx, *id)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteSecurityGroupOutput{GroupId: id, Return: aws.Bool(true)}, nil
}

// groupInUse reports whether an instance, a task or an interface is a member of a group, or another group's rule names it.
func groupInUse(v *state.View, id string) bool {
	named := func(g types.GroupIdentifier) bool { return aws.ToString(g.GroupId) == id }
	for i := range v.Instances.All() {
		if !i.IsOver() && slices.ContainsFunc(i.SecurityGroups, named) {
			return true
		}
	}
	if len(v.TasksIn(id)) > 0 {
		return true
	}
	for i := range v.NetworkInterfaces.All() {
		if slices.ContainsFunc(i.Groups, named) {
			return true
		}
	}
	for r := range v.SecurityGroupRules.All() {
		if r.ReferencedGroupInfo != nil && *r.ReferencedGroupInfo.GroupId == id && *r.GroupId != id {
			return true
		}
	}
	return false
}
