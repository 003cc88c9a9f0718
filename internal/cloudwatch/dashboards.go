package cloudwatch

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/state"
)

// dashboardName matches valid names of dashboards: API_PutDashboard.
var dashboardName = pattern.New(`^[A-Za-z0-9_-]+$`, 255)

// maxWidgets limits the widgets of a dashboard.
const maxWidgets = 500

// PutDashboard creates a dashboard, or replaces the one with its name.
func (s *Service) PutDashboard(ctx context.Context, in *cloudwatch.PutDashboardInput) (*cloudwatch.PutDashboardOutput, error) {
	if !dashboardName.MatchString(aws.ToString(in.DashboardName)) {
		return nil, invalid(
			"The value for field DashboardName contains invalid characters. It can only contain alphanumerics, dash (-) and underscore (_).\n",
		)
	}
	if err := checkDashboard(aws.ToString(in.DashboardBody)); err != nil {
		return nil, err
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		row := &state.Dashboard{Name: *in.DashboardName, Body: *in.DashboardBody, LastModified: s.opts.Now(), Tags: in.Tags}
		if before := tx.Dashboards.Get(row.Name); before != nil {
			row.Tags = before.Tags // the call's tags apply only to a new dashboard
		}
		tx.Dashboards.Put(row)
		return nil
	})
	return &cloudwatch.PutDashboardOutput{DashboardValidationMessages: []types.DashboardValidationMessage{}}, err
}

func checkDashboard(body string) error {
	var parsed struct {
		Widgets []json.RawMessage `json:"widgets"`
	}
	if err := json.Unmarshal([]byte(body), &parsed); err != nil {
		return badDashboard("/", "The field DashboardBody must be a valid JSON object: "+err.Error())
	}
	if parsed.Widgets == nil {
		return badDashboard("/widgets", "The field widgets is required")
	}
	if len(parsed.Widgets) > maxWidgets {
		return badDashboard("/widgets", "There must be at most 500 widgets")
	}
	return nil
}

func badDashboard(path, message string) error {
	return &types.DashboardInvalidInputError{
		Message:                     aws.String("The dashboard is invalid, there are 1 validation errors: " + message),
		DashboardValidationMessages: []types.DashboardValidationMessage{{DataPath: &path, Message: &message}},
	}
}

// GetDashboard returns a dashboard.
func (s *Service) GetDashboard(_ context.Context, in *cloudwatch.GetDashboardInput) (*cloudwatch.GetDashboardOutput, error) {
	if aws.ToString(in.DashboardName) == "" {
		return nil, missing("DashboardName")
	}
	d := s.store.View().Dashboards.Get(*in.DashboardName)
	if d == nil {
		return nil, dashboardNotFound(*in.DashboardName)
	}
	return &cloudwatch.GetDashboardOutput{
		DashboardName: &d.Name,
		DashboardBody: &d.Body,
		DashboardArn:  aws.String(s.dashboardArn(d.Name)),
	}, nil
}

// maxDashboards is the page size of ListDashboards.
const maxDashboards = 1000

// ListDashboards lists dashboards by name.
func (s *Service) ListDashboards(_ context.Context, in *cloudwatch.ListDashboardsInput) (*cloudwatch.ListDashboardsOutput, error) {
	l := listing("ListDashboards", "", maxDashboards)
	l.BadToken = func() error { return invalid("The parameter NextToken is invalid.") }
	page, next, err := account.Behind(l, nil, in.NextToken, s.store.View().Dashboards.Behind,
		func(d *state.Dashboard) string { return d.Name },
		func(d *state.Dashboard) bool { return strings.HasPrefix(d.Name, aws.ToString(in.DashboardNamePrefix)) })
	if err != nil {
		return nil, err
	}
	out := &cloudwatch.ListDashboardsOutput{DashboardEntries: []types.DashboardEntry{}, NextToken: next}
	for _, d := range page {
		out.DashboardEntries = append(out.DashboardEntries, types.DashboardEntry{
			DashboardName: &d.Name,
			DashboardArn:  aws.String(s.dashboardArn(d.Name)),
			LastModified:  &d.LastModified,
			Size:          aws.Int64(int64(len(d.Body))),
		})
	}
	return out, nil
}

// DeleteDashboards deletes dashboards, or none if one of them doesn't exist.
func (s *Service) DeleteDashboards(ctx context.Context, in *cloudwatch.DeleteDashboardsInput) (*cloudwatch.DeleteDashboardsOutput, error) {
	if len(in.DashboardNames) == 0 {
		return nil, missing("DashboardNames")
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		for _, name := range in.DashboardNames {
			if tx.Dashboards.Get(name) == nil {
				return dashboardNotFound(name)
			}
			tx.Dashboards.Delete(name)
		}
		return nil
	})
	return &cloudwatch.DeleteDashboardsOutput{}, err
}
