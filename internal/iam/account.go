package iam

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

func count[R any](table state.Table[*R]) (n int32) {
	for range table.All() {
		n++
	}
	return n
}

// GetAccountSummary counts what there is, beside the quotas.
func (s *Service) GetAccountSummary(context.Context, *iam.GetAccountSummaryInput) (*iam.GetAccountSummaryOutput, error) {
	v := s.store.View()
	versions := int32(0)
	for p := range v.ManagedPolicies.All() {
		versions += int32(len(p.Versions))
	}
	return &iam.GetAccountSummaryOutput{SummaryMap: map[string]int32{
		"Users":                             count(v.Users),
		"UsersQuota":                        5000,
		"Groups":                            count(v.UserGroups),
		"GroupsQuota":                       300,
		"Roles":                             count(v.Roles),
		"RolesQuota":                        1000,
		"InstanceProfiles":                  count(v.InstanceProfiles),
		"InstanceProfilesQuota":             1000,
		"Policies":                          count(v.ManagedPolicies),
		"PoliciesQuota":                     1500,
		"PolicyVersionsInUse":               versions,
		"PolicyVersionsInUseQuota":          10000,
		"PolicySizeQuota":                   maxManaged,
		"VersionsPerPolicyQuota":            maxVersions,
		"UserPolicySizeQuota":               int32(userKind.maxInline),
		"GroupPolicySizeQuota":              int32(groupKind.maxInline),
		"RolePolicySizeQuota":               int32(roleKind.maxInline),
		"AssumeRolePolicySizeQuota":         maxTrust,
		"AttachedPoliciesPerUserQuota":      maxAttached,
		"AttachedPoliciesPerGroupQuota":     maxAttached,
		"AttachedPoliciesPerRoleQuota":      maxAttached,
		"GroupsPerUserQuota":                maxGroupsPerUser,
		"AccessKeysPerUserQuota":            maxKeysPerUser,
		"AccountAccessKeysPresent":          0,
		"AccountMFAEnabled":                 0,
		"AccountPasswordPresent":            0,
		"AccountSigningCertificatesPresent": 0,
		"MFADevices":                        0,
		"MFADevicesInUse":                   0,
		"Providers":                         0,
		"ServerCertificates":                0,
		"ServerCertificatesQuota":           20,
		"SigningCertificatesPerUserQuota":   2,
		"GlobalEndpointTokenVersion":        1,
	}}, nil
}

// ListAccountAliases lists none: an account of Pintle's has no sign-in page, and so no alias.
func (s *Service) ListAccountAliases(_ context.Context, in *iam.ListAccountAliasesInput) (*iam.ListAccountAliasesOutput, error) {
	return &iam.ListAccountAliasesOutput{AccountAliases: []string{}}, checkMarker("ListAccountAliases", in.Marker)
}

// detail is one entry of GetAccountAuthorizationDetails.
type detail struct {
	key string
	add func(*iam.GetAccountAuthorizationDetailsOutput)
}

// GetAccountAuthorizationDetails lists all users, groups, roles and policies with what they hold.
func (s *Service) GetAccountAuthorizationDetails(
	_ context.Context, in *iam.GetAccountAuthorizationDetailsInput,
) (*iam.GetAccountAuthorizationDetailsOutput, error) {
	wants := func(kind types.EntityType) bool { return len(in.Filter) == 0 || slices.Contains(in.Filter, kind) }
	v := s.store.View()
	var all []detail
	if wants(types.EntityTypeUser) {
		all = append(all, s.userDetails(v)...)
	}
	if wants(types.EntityTypeGroup) {
		all = append(all, s.groupDetails(v)...)
	}
	if wants(types.EntityTypeRole) {
		all = append(all, s.roleDetails(v)...)
	}
	all = append(all, s.policyDetails(v, wants(types.EntityTypeLocalManagedPolicy), wants(types.EntityTypeAWSManagedPolicy))...)
	account.SortBy(all, func(d detail) string { return state.NameKey(d.key) })
	on, truncated, next, err := page("GetAccountAuthorizationDetails", all, in.MaxItems, in.Marker, func(d detail) string { return d.key })
	if err != nil {
		return nil, err
	}
	out := &iam.GetAccountAuthorizationDetailsOutput{
		UserDetailList: []types.UserDetail{}, GroupDetailList: []types.GroupDetail{}, RoleDetailList: []types.RoleDetail{},
		Policies: []types.ManagedPolicyDetail{}, IsTruncated: truncated, Marker: next,
	}
	for _, d := range on {
		d.add(out)
	}
	return out, nil
}

func inlineDetails(i *state.Identity) []types.PolicyDetail {
	list := []types.PolicyDetail{}
	for _, name := range slices.Sorted(maps.Keys(i.Inline)) {
		list = append(list, types.PolicyDetail{PolicyName: &name, PolicyDocument: encoded(i.Inline[name])})
	}
	return list
}

func (s *Service) userDetails(v *state.View) (all []detail) {
	for u := range v.Users.All() {
		all = append(all, detail{"user " + u.Name, func(out *iam.GetAccountAuthorizationDetailsOutput) {
			out.UserDetailList = append(out.UserDetailList, types.UserDetail{
				Arn:                     aws.String(s.arn("user", u.Path, u.Name)),
				AttachedManagedPolicies: s.attachedTo(v, &u.Identity),
				CreateDate:              &u.Created,
				GroupList:               u.Groups,
				Path:                    &u.Path,
				PermissionsBoundary:     boundaryOf(&u.Identity),
				Tags:                    u.Tags,
				UserId:                  &u.ID,
				UserName:                &u.Name,
				UserPolicyList:          inlineDetails(&u.Identity),
			})
		}})
	}
	return all
}

func (s *Service) groupDetails(v *state.View) (all []detail) {
	for g := range v.UserGroups.All() {
		all = append(all, detail{"group " + g.Name, func(out *iam.GetAccountAuthorizationDetailsOutput) {
			out.GroupDetailList = append(out.GroupDetailList, types.GroupDetail{
				Arn:                     aws.String(s.arn("group", g.Path, g.Name)),
				AttachedManagedPolicies: s.attachedTo(v, &g.Identity),
				CreateDate:              &g.Created,
				GroupId:                 &g.ID,
				GroupName:               &g.Name,
				GroupPolicyList:         inlineDetails(&g.Identity),
				Path:                    &g.Path,
			})
		}})
	}
	return all
}

func (s *Service) roleDetails(v *state.View) (all []detail) {
	for r := range v.Roles.All() {
		all = append(all, detail{"role " + r.Name, func(out *iam.GetAccountAuthorizationDetailsOutput) {
			out.RoleDetailList = append(out.RoleDetailList, types.RoleDetail{
				Arn:                      aws.String(s.arn("role", r.Path, r.Name)),
				AssumeRolePolicyDocument: encoded(r.Trust),
				AttachedManagedPolicies:  s.attachedTo(v, &r.Identity),
				CreateDate:               &r.Created,
				InstanceProfileList: mapped(profilesOf(v, r.Name), func(p *state.InstanceProfile) types.InstanceProfile {
					return s.profile(v, p)
				}),
				Path:                &r.Path,
				PermissionsBoundary: boundaryOf(&r.Identity),
				RoleId:              &r.ID,
				RoleLastUsed:        &types.RoleLastUsed{},
				RoleName:            &r.Name,
				RolePolicyList:      inlineDetails(&r.Identity),
				Tags:                r.Tags,
			})
		}})
	}
	return all
}

// policyDetails lists the account's managed policies, and those of AWS's that are in use.
func (s *Service) policyDetails(v *state.View, local, aws bool) (all []detail) {
	u := usesOf(v)
	if local {
		for p := range v.ManagedPolicies.All() {
			all = append(all, s.policyDetail(p, u))
		}
	}
	if aws {
		for arn, p := range s.aws {
			if u.attached[arn] > 0 || u.bounds[arn] > 0 {
				all = append(all, s.policyDetail(p, u))
			}
		}
	}
	return all
}

func (s *Service) policyDetail(p *state.ManagedPolicy, u uses) detail {
	return detail{"policy " + s.policyARN(p), func(out *iam.GetAccountAuthorizationDetailsOutput) {
		listed := s.wholePolicy(p, u)
		out.Policies = append(out.Policies, types.ManagedPolicyDetail{
			Arn:                           listed.Arn,
			AttachmentCount:               listed.AttachmentCount,
			CreateDate:                    listed.CreateDate,
			DefaultVersionId:              listed.DefaultVersionId,
			Description:                   listed.Description,
			IsAttachable:                  true,
			Path:                          listed.Path,
			PermissionsBoundaryUsageCount: listed.PermissionsBoundaryUsageCount,
			PolicyId:                      listed.PolicyId,
			PolicyName:                    listed.PolicyName,
			UpdateDate:                    listed.UpdateDate,
			PolicyVersionList: mapped(p.Versions, func(v state.PolicyVersion) types.PolicyVersion {
				whole := version(p, v)
				whole.Document = encoded(v.Document)
				return whole
			}),
		})
	}}
}

// The credentials that users don't have here: a client that empties a user before it deletes it asks for all of them.

// ListMFADevices lists none.
func (s *Service) ListMFADevices(_ context.Context, in *iam.ListMFADevicesInput) (*iam.ListMFADevicesOutput, error) {
	return &iam.ListMFADevicesOutput{MFADevices: []types.MFADevice{}}, cmp.Or(s.checkUser(in.UserName), checkMarker("ListMFADevices", in.Marker))
}

// ListVirtualMFADevices lists none.
func (s *Service) ListVirtualMFADevices(
	_ context.Context, in *iam.ListVirtualMFADevicesInput,
) (*iam.ListVirtualMFADevicesOutput, error) {
	return &iam.ListVirtualMFADevicesOutput{VirtualMFADevices: []types.VirtualMFADevice{}}, checkMarker("ListVirtualMFADevices", in.Marker)
}

// ListSSHPublicKeys lists none.
func (s *Service) ListSSHPublicKeys(_ context.Context, in *iam.ListSSHPublicKeysInput) (*iam.ListSSHPublicKeysOutput, error) {
	return &iam.ListSSHPublicKeysOutput{SSHPublicKeys: []types.SSHPublicKeyMetadata{}}, cmp.Or(s.checkUser(in.UserName), checkMarker("ListSSHPublicKeys", in.Marker))
}

// ListSigningCertificates lists none.
func (s *Service) ListSigningCertificates(
	_ context.Context, in *iam.ListSigningCertificatesInput,
) (*iam.ListSigningCertificatesOutput, error) {
	return &iam.ListSigningCertificatesOutput{Certificates: []types.SigningCertificate{}}, cmp.Or(s.checkUser(in.UserName), checkMarker("ListSigningCertificates", in.Marker))
}

// ListServiceSpecificCredentials lists none.
func (s *Service) ListServiceSpecificCredentials(
	_ context.Context, in *iam.ListServiceSpecificCredentialsInput,
) (*iam.ListServiceSpecificCredentialsOutput, error) {
	return &iam.ListServiceSpecificCredentialsOutput{
		ServiceSpecificCredentials: []types.ServiceSpecificCredentialMetadata{},
	}, cmp.Or(s.checkUser(in.UserName), checkMarker("ListServiceSpecificCredentials", in.Marker))
}

// DeleteLoginProfile deletes none: nobody signs in with a password here.
func (s *Service) DeleteLoginProfile(_ context.Context, in *iam.DeleteLoginProfileInput) (*iam.DeleteLoginProfileOutput, error) {
	return nil, cmp.Or(s.checkUser(in.UserName), noSuch("Login Profile for User %s cannot be found.", aws.ToString(in.UserName)))
}

// GetLoginProfile returns none, as DeleteLoginProfile.
func (s *Service) GetLoginProfile(_ context.Context, in *iam.GetLoginProfileInput) (*iam.GetLoginProfileOutput, error) {
	return nil, cmp.Or(s.checkUser(in.UserName), noSuch("Login Profile for User %s cannot be found.", aws.ToString(in.UserName)))
}

// checkMarker refuses every marker of a list that always is one page.
func checkMarker(operation string, marker *string) error {
	_, _, err := pages(operation).Start(nil, marker)
	return err
}

// checkUser returns NoSuchEntity for a user that there isn't.
func (s *Service) checkUser(name *string) error {
	if name == nil {
		return nil
	}
	_, err := userKind.find(s.store.View(), *name)
	return err
}
