package resources

import "context"

// rolePolicy has the properties of AWS::IAM::RolePolicy, a policy that is embedded in one role. Its physical ID is its own name and the role's.
type rolePolicy struct {
	PolicyName     *string `cfn:"required,create"`
	RoleName       *string `cfn:"required,create"`
	PolicyDocument any     `cfn:"required"`
}

// userPolicy has the properties of AWS::IAM::UserPolicy.
type userPolicy struct {
	PolicyName     *string `cfn:"required,create"`
	UserName       *string `cfn:"required,create"`
	PolicyDocument any     `cfn:"required"`
}

// userGroupPolicy has the properties of AWS::IAM::GroupPolicy.
type userGroupPolicy struct {
	PolicyName     *string `cfn:"required,create"`
	GroupName      *string `cfn:"required,create"`
	PolicyDocument any     `cfn:"required"`
}

// embeddedPolicy is what the three are made of.
type embeddedPolicy struct {
	name, holder *string
	document     any
}

func (p *rolePolicy) embedded() embeddedPolicy {
	return embeddedPolicy{p.PolicyName, p.RoleName, p.PolicyDocument}
}

func (p *userPolicy) embedded() embeddedPolicy {
	return embeddedPolicy{p.PolicyName, p.UserName, p.PolicyDocument}
}

func (p *userGroupPolicy) embedded() embeddedPolicy {
	return embeddedPolicy{p.PolicyName, p.GroupName, p.PolicyDocument}
}

var (
	_ = add(embeddedIn(iamRoles, func(name, role *string, document any) *rolePolicy {
		return &rolePolicy{name, role, document}
	}))
	_ = add(embeddedIn(iamUsers, func(name, user *string, document any) *userPolicy {
		return &userPolicy{name, user, document}
	}))
	_ = add(embeddedIn(iamGroups, func(name, group *string, document any) *userGroupPolicy {
		return &userGroupPolicy{name, group, document}
	}))
)

// embeddedIn returns the type of policies that are embedded in one principal of a kind. With puts the properties together.
func embeddedIn[P interface{ embedded() embeddedPolicy }](of principal, with func(name, holder *string, document any) P) *kind[P] {
	put := func(ctx context.Context, s Step, properties P) error {
		p := properties.embedded()
		return of.put(ctx, s, *p.holder, *p.name, document(p.document))
	}
	live := func(ctx context.Context, s Step, _ string, properties P) (none P, err error) {
		p := properties.embedded()
		text, err := of.get(ctx, s, *p.holder, *p.name)
		if err != nil {
			return none, err
		}
		return with(p.name, p.holder, unescaped(text)), nil
	}
	id := func(_ Step, properties P) string {
		p := properties.embedded()
		if p.name == nil || p.holder == nil {
			return ""
		}
		return *p.name + "|" + *p.holder
	}
	return &kind[P]{
		name:       of.typeForOne,
		live:       live,
		identifier: []string{"PolicyName", of.name},
		id:         id,
		create: func(ctx context.Context, s Step, p P) (string, error) {
			return id(s, p), put(ctx, s, p)
		},
		update: func(ctx context.Context, s Step, _ string, _, after P) error { return put(ctx, s, after) },
		delete: func(ctx context.Context, s Step, _ string, properties P) error {
			p := properties.embedded()
			return of.drop(ctx, s, *p.holder, *p.name)
		},
		read: func(ctx context.Context, s Step, id string, p P) (Made, error) {
			_, err := live(ctx, s, id, p)
			return Made{}, err
		},
	}
}
