package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	"github.com/pintle/pintle/internal/wire/call"
)

// dashboard has the properties of AWS::CloudWatch::Dashboard. Its physical ID is the name.
type dashboard struct {
	DashboardName *string `cfn:"create"`
	DashboardBody *string `cfn:"required"`
}

var _ = add(&kind[*dashboard]{
	name:       "AWS::CloudWatch::Dashboard",
	live:       liveDashboard,
	list:       listDashboards,
	identifier: []string{"DashboardName"},
	id:         func(s Step, d *dashboard) string { return s.named(d.DashboardName, 255) },
	create: func(ctx context.Context, s Step, d *dashboard) (string, error) {
		name := s.named(d.DashboardName, 255)
		return name, putDashboard(ctx, s, name, d)
	},
	update: func(ctx context.Context, s Step, name string, _, after *dashboard) error {
		return putDashboard(ctx, s, name, after)
	},
	delete: func(ctx context.Context, s Step, name string, _ *dashboard) error {
		in := &cloudwatch.DeleteDashboardsInput{DashboardNames: []string{name}}
		return did[cloudwatch.DeleteDashboardsOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, name string, _ *dashboard) (Made, error) {
		err := did[cloudwatch.GetDashboardOutput](ctx, s, &cloudwatch.GetDashboardInput{DashboardName: &name})
		return Made{}, err
	},
})

// putDashboard puts a dashboard. What CloudWatch only warns of in its body is nothing that fails it.
func putDashboard(ctx context.Context, s Step, name string, d *dashboard) error {
	in := &cloudwatch.PutDashboardInput{DashboardName: &name, DashboardBody: d.DashboardBody}
	return did[cloudwatch.PutDashboardOutput](ctx, s, in)
}

func liveDashboard(ctx context.Context, s Step, name string, _ *dashboard) (*dashboard, error) {
	out, err := call.Do[cloudwatch.GetDashboardOutput](ctx, s.Services, &cloudwatch.GetDashboardInput{DashboardName: &name})
	if err != nil {
		return nil, err
	}
	return &dashboard{DashboardName: out.DashboardName, DashboardBody: out.DashboardBody}, nil
}

func listDashboards(ctx context.Context, s Step, _ *dashboard) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[cloudwatch.ListDashboardsOutput](ctx, s.Services, &cloudwatch.ListDashboardsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.DashboardEntries {
			ids = append(ids, *x.DashboardName)
		}
		return ids, out.NextToken, nil
	})
}
