package template

import (
	"slices"
	"strings"
)

// names are the properties by which templates name IAM's resources.
var names = []string{"GroupName", "InstanceProfileName", "ManagedPolicyName", "RoleName", "UserName"}

// nameless are the types of IAM's that have no name of their own: theirs are those of users, groups and roles.
var nameless = []string{
	"AWS::IAM::AccessKey", "AWS::IAM::GroupPolicy", "AWS::IAM::RolePolicy", "AWS::IAM::UserPolicy", "AWS::IAM::UserToGroupAddition",
}

// Capabilities returns the capabilities that whoever deploys the template must acknowledge, and the types of resources that need them.
func (t *Template) Capabilities() (capabilities, types []string) {
	capability := "CAPABILITY_IAM"
	for i := range t.Resources {
		r := &t.Resources[i]
		if !strings.HasPrefix(r.Type, "AWS::IAM::") {
			continue
		}
		if !slices.Contains(types, r.Type) {
			types = append(types, r.Type)
		}
		if slices.Contains(nameless, r.Type) {
			continue
		}
		if slices.ContainsFunc(names, func(name string) bool { return r.Properties.Get(name) != nil }) {
			capability = "CAPABILITY_NAMED_IAM"
		}
	}
	if types == nil {
		return nil, nil
	}
	return []string{capability}, types
}
