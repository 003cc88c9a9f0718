package resources

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/pintle/pintle/internal/wire/call"
)

// serviceLinkedRole has the properties of AWS::IAM::ServiceLinkedRole. Its physical ID is the name, which follows from the service.
type serviceLinkedRole struct {
	AWSServiceName *string `cfn:"required,create"`
	CustomSuffix   *string `cfn:"create"`
	Description    *string
}

var _ = add(&kind[*serviceLinkedRole]{
	name:       "AWS::IAM::ServiceLinkedRole",
	live:       liveServiceLinkedRole,
	identifier: []string{"RoleName"},
	attributes: []string{"RoleName"},
	find: func(ctx context.Context, s Step, r *serviceLinkedRole) (string, error) {
		in := &iam.ListRolesInput{PathPrefix: new("/aws-service-role/" + *r.AWSServiceName + "/")}
		out, err := call.Do[iam.ListRolesOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		for _, is := range out.Roles {
			if strings.HasSuffix(*is.RoleName, aws.ToString(r.CustomSuffix)) && !is.CreateDate.Before(s.Since.Truncate(time.Second)) {
				return *is.RoleName, nil
			}
		}
		return "", nil
	},
	create: func(ctx context.Context, s Step, r *serviceLinkedRole) (string, error) {
		in := &iam.CreateServiceLinkedRoleInput{AWSServiceName: r.AWSServiceName, CustomSuffix: r.CustomSuffix, Description: r.Description}
		out, err := call.Do[iam.CreateServiceLinkedRoleOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		return *out.Role.RoleName, nil
	},
	update: func(ctx context.Context, s Step, name string, _, after *serviceLinkedRole) error {
		in := &iam.UpdateRoleDescriptionInput{RoleName: &name, Description: aws.String(aws.ToString(after.Description))}
		return did[iam.UpdateRoleDescriptionOutput](ctx, s, in)
	},
	delete: func(ctx context.Context, s Step, name string, _ *serviceLinkedRole) error {
		return did[iam.DeleteServiceLinkedRoleOutput](ctx, s, &iam.DeleteServiceLinkedRoleInput{RoleName: &name})
	},
	read: func(_ context.Context, _ Step, name string, _ *serviceLinkedRole) (Made, error) {
		return Made{Attributes: map[string]any{"RoleName": name}}, nil
	},
})

func liveServiceLinkedRole(ctx context.Context, s Step, name string, asked *serviceLinkedRole) (*serviceLinkedRole, error) {
	out, err := call.Do[iam.GetRoleOutput](ctx, s.Services, &iam.GetRoleInput{RoleName: &name})
	if err != nil {
		return nil, err
	}
	service := strings.Trim(strings.TrimPrefix(*out.Role.Path, "/aws-service-role/"), "/")
	return &serviceLinkedRole{AWSServiceName: &service, CustomSuffix: asked.CustomSuffix, Description: out.Role.Description}, nil
}
