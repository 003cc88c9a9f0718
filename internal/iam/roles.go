package iam

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
)

// maxTrust is the most characters of a role's trust policy.
const maxTrust = 2048

// role returns a role as lists have it.
func (s *Service) role(r *state.Role) types.Role {
	out := types.Role{
		Arn:                      aws.String(s.arn("role", r.Path, r.Name)),
		CreateDate:               &r.Created,
		Path:                     &r.Path,
		RoleId:                   &r.ID,
		RoleName:                 &r.Name,
		AssumeRolePolicyDocument: encoded(r.Trust),
		MaxSessionDuration:       &r.MaxSessionSeconds,
	}
	if r.Description != "" {
		out.Description = &r.Description
	}
	return out
}

func (s *Service) wholeRole(r *state.Role) *types.Role {
	out := s.role(r)
	out.Tags = r.Tags
	out.PermissionsBoundary = boundaryOf(&r.Identity)
	out.RoleLastUsed = &types.RoleLastUsed{}
	return &out
}

// findRole returns a role's row, or NoSuchEntity.
func findRole(v *state.View, name string) (*state.Role, error) {
	if _, err := roleKind.find(v, name); err != nil {
		return nil, err
	}
	return v.Roles.Get(state.NameKey(name)), nil
}

// checkTrust checks a trust policy, and that the principals of this account that it names exist.
func (s *Service) checkTrust(v *state.View, document string) error {
	p, err := parse(policy.Trust, document)
	if err != nil {
		return err
	}
	if length(document) > maxTrust {
		return exceeded("Cannot exceed quota for ACLSizePerRole: %d", maxTrust)
	}
	for _, name := range p.Principals("AWS") {
		user, isUser := s.opts.GlobalResourceOf("iam", "user/", name)
		role, isRole := s.opts.GlobalResourceOf("iam", "role/", name)
		missing := isUser && !s.isAt(userKind, v, user) || isRole && !s.isAt(roleKind, v, role)
		if missing {
			message := policy.InvalidPrincipal("AWS", name).Error()
			return &types.MalformedPolicyDocumentException{Message: &message}
		}
	}
	return nil
}

// isAt reports whether there is an identity with a path and name, as an ARN has them.
func (s *Service) isAt(k *kind, v *state.View, pathAndName string) bool {
	i := k.get(v, pathAndName[strings.LastIndexByte(pathAndName, '/')+1:])
	return i != nil && i.Path+i.Name == "/"+pathAndName
}

// CreateRole creates a role.
func (s *Service) CreateRole(ctx context.Context, in *iam.CreateRoleInput) (*iam.CreateRoleOutput, error) {
	i, err := s.newIdentity(in.RoleName, in.Path, in.PermissionsBoundary, in.Tags, "AROA")
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(i.Path, linkedPath) {
		return nil, invalid("Paths that begin with %s are those of roles that CreateServiceLinkedRole makes.", linkedPath)
	}
	row := &state.Role{
		Identity:          i,
		Description:       aws.ToString(in.Description),
		Trust:             *in.AssumeRolePolicyDocument,
		MaxSessionSeconds: cmp.Or(aws.ToInt32(in.MaxSessionDuration), 3600),
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.Roles.Get(state.NameKey(i.Name)) != nil {
			return exists("Role with name %s already exists.", i.Name)
		}
		if err := s.checkTrust(tx.View, row.Trust); err != nil {
			return err
		}
		if err := s.checkBoundary(tx.View, i.Boundary); err != nil {
			return err
		}
		tx.Roles.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := s.wholeRole(row)
	out.RoleLastUsed = nil
	return &iam.CreateRoleOutput{Role: out}, nil
}

// GetRole returns a role.
func (s *Service) GetRole(_ context.Context, in *iam.GetRoleInput) (*iam.GetRoleOutput, error) {
	r, err := findRole(s.store.View(), *in.RoleName)
	if err != nil {
		return nil, err
	}
	return &iam.GetRoleOutput{Role: s.wholeRole(r)}, nil
}

// changeRole changes what only roles have.
func (s *Service) changeRole(ctx context.Context, name string, change func(*state.Tx, *state.Role) error) (r state.Role, err error) {
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := findRole(tx.View, name)
		if err != nil {
			return err
		}
		r = *old
		if err := change(tx, &r); err != nil {
			return err
		}
		tx.Roles.Put(&r)
		return nil
	})
	return r, err
}

// UpdateRole changes a role's description and how long its sessions may last.
func (s *Service) UpdateRole(ctx context.Context, in *iam.UpdateRoleInput) (*iam.UpdateRoleOutput, error) {
	_, err := s.changeRole(ctx, *in.RoleName, func(_ *state.Tx, r *state.Role) error {
		if in.Description != nil {
			r.Description = *in.Description
		}
		r.MaxSessionSeconds = cmp.Or(aws.ToInt32(in.MaxSessionDuration), r.MaxSessionSeconds)
		return unprotected(roleKind, &r.Identity)
	})
	if err != nil {
		return nil, err
	}
	return &iam.UpdateRoleOutput{}, nil
}

// UpdateRoleDescription changes a role's description.
func (s *Service) UpdateRoleDescription(
	ctx context.Context, in *iam.UpdateRoleDescriptionInput,
) (*iam.UpdateRoleDescriptionOutput, error) {
	r, err := s.changeRole(ctx, *in.RoleName, func(_ *state.Tx, r *state.Role) error {
		r.Description = *in.Description
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.UpdateRoleDescriptionOutput{Role: s.wholeRole(&r)}, nil
}

// UpdateAssumeRolePolicy replaces a role's trust policy.
func (s *Service) UpdateAssumeRolePolicy(
	ctx context.Context, in *iam.UpdateAssumeRolePolicyInput,
) (*iam.UpdateAssumeRolePolicyOutput, error) {
	_, err := s.changeRole(ctx, *in.RoleName, func(tx *state.Tx, r *state.Role) error {
		r.Trust = *in.PolicyDocument
		if err := s.checkTrust(tx.View, r.Trust); err != nil {
			return err
		}
		return unprotected(roleKind, &r.Identity)
	})
	if err != nil {
		return nil, err
	}
	return &iam.UpdateAssumeRolePolicyOutput{}, nil
}

// DeleteRole deletes a role that has nothing left.
func (s *Service) DeleteRole(ctx context.Context, in *iam.DeleteRoleInput) (*iam.DeleteRoleOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		r, err := roleKind.find(tx.View, *in.RoleName)
		if err != nil {
			return err
		}
		if err := unprotected(roleKind, r); err != nil {
			return err
		}
		return s.deleteRole(tx, r)
	})
	if err != nil {
		return nil, err
	}
	return &iam.DeleteRoleOutput{}, nil
}

func (s *Service) deleteRole(tx *state.Tx, r *state.Identity) error {
	if len(profilesOf(tx.View, r.Name)) > 0 {
		return conflict("Cannot delete entity, must remove roles from instance profile first.")
	}
	if err := bare(r); err != nil {
		return err
	}
	tx.Roles.Delete(state.NameKey(r.Name))
	return nil
}

// ListRoles lists roles.
func (s *Service) ListRoles(_ context.Context, in *iam.ListRolesInput) (*iam.ListRolesOutput, error) {
	rows := under(s.store.View().Roles.All(), in.PathPrefix, func(r *state.Role) string { return r.Path })
	on, truncated, next, err := page("ListRoles", rows, in.MaxItems, in.Marker, func(r *state.Role) string { return r.Name })
	if err != nil {
		return nil, err
	}
	return &iam.ListRolesOutput{Roles: mapped(on, s.role), IsTruncated: truncated, Marker: next}, nil
}

// linkedServices are the services that roles can be linked to: the role's name and the policy that AWS attaches.
var linkedServices = map[string]struct{ role, policy string }{
	"autoscaling.amazonaws.com":                             {"AWSServiceRoleForAutoScaling", "AutoScalingServiceRolePolicy"},
	"batch.amazonaws.com":                                   {"AWSServiceRoleForBatch", "BatchServiceRolePolicy"},
	"ecs.amazonaws.com":                                     {"AWSServiceRoleForECS", "AmazonECSServiceRolePolicy"},
	"ecs.application-autoscaling.amazonaws.com":             {"AWSServiceRoleForApplicationAutoScaling_ECSService", "AWSApplicationAutoscalingECSServicePolicy"},
	"elasticloadbalancing.amazonaws.com":                    {"AWSServiceRoleForElasticLoadBalancing", "AWSElasticLoadBalancingServiceRolePolicy"},
	"events.amazonaws.com":                                  {"AWSServiceRoleForCloudWatchEvents", "CloudWatchEventsServiceRolePolicy"},
	"spot.amazonaws.com":                                    {"AWSServiceRoleForEC2Spot", "AWSEC2SpotServiceRolePolicy"},
	"spotfleet.amazonaws.com":                               {"AWSServiceRoleForEC2SpotFleet", "AWSEC2SpotFleetServiceRolePolicy"},
	"custom-resource.application-autoscaling.amazonaws.com": {"AWSServiceRoleForApplicationAutoScaling_CustomResource", "AWSApplicationAutoScalingCustomResourcePolicy"},
}

// CreateServiceLinkedRole creates the role that is linked to a service.
func (s *Service) CreateServiceLinkedRole(
	ctx context.Context, in *iam.CreateServiceLinkedRoleInput,
) (*iam.CreateServiceLinkedRoleOutput, error) {
	linked, ok := linkedServices[*in.AWSServiceName]
	if !ok {
		return nil, invalidInput("Service-linked roles of %s aren't known to Pintle.", *in.AWSServiceName)
	}
	name := linked.role
	if suffix := aws.ToString(in.CustomSuffix); suffix != "" {
		if *in.AWSServiceName != "autoscaling.amazonaws.com" {
			return nil, invalidInput("Custom suffix is not allowed for %s", *in.AWSServiceName)
		}
		name += "_" + suffix
	}
	row := &state.Role{
		Identity: state.Identity{
			Name:     name,
			Path:     linkedPath + *in.AWSServiceName + "/",
			ID:       newID("AROA"),
			Created:  s.now(),
			Attached: []string{awsARN("aws-service-role/" + linked.policy)},
		},
		Description:       aws.ToString(in.Description),
		Trust:             document(statement{Effect: "Allow", Action: list{"sts:AssumeRole"}, Principal: map[string]string{"Service": *in.AWSServiceName}}),
		MaxSessionSeconds: 3600,
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.Roles.Get(state.NameKey(name)) != nil {
			return invalidInput("Service role name %s has been taken in this account, please try a different suffix.", name)
		}
		tx.Roles.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := s.role(row)
	return &iam.CreateServiceLinkedRoleOutput{Role: &out}, nil
}

// DeleteServiceLinkedRole deletes the role that is linked to a service, at once.
func (s *Service) DeleteServiceLinkedRole(
	ctx context.Context, in *iam.DeleteServiceLinkedRoleInput,
) (*iam.DeleteServiceLinkedRoleOutput, error) {
	task := ""
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		r, err := roleKind.find(tx.View, *in.RoleName)
		if err != nil {
			return err
		}
		if unprotected(roleKind, r) == nil {
			return invalidInput("%s is no role that is linked to a service.", r.Name)
		}
		task = "task" + r.Path + r.Name + "/" + state.NewUUID()
		bareRole := *r
		bareRole.Attached = nil
		return s.deleteRole(tx, &bareRole)
	})
	if err != nil {
		return nil, err
	}
	return &iam.DeleteServiceLinkedRoleOutput{DeletionTaskId: &task}, nil
}

// GetServiceLinkedRoleDeletionStatus says what became of a deletion: it was done when it was asked for.
func (s *Service) GetServiceLinkedRoleDeletionStatus(
	_ context.Context, in *iam.GetServiceLinkedRoleDeletionStatusInput,
) (*iam.GetServiceLinkedRoleDeletionStatusOutput, error) {
	parts := strings.Split(*in.DeletionTaskId, "/")
	if len(parts) != 5 || !slices.Contains([]string{"task"}, parts[0]) || "/"+parts[1]+"/" != linkedPath {
		return nil, noSuch("Deletion task %s cannot be found.", *in.DeletionTaskId)
	}
	return &iam.GetServiceLinkedRoleDeletionStatusOutput{Status: types.DeletionTaskStatusTypeSucceeded}, nil
}
