package elb

import (
	"context"
	"strconv"
	"strings"

	api "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/account"
)

// limits are the quotas that are held here, by AWS's names.
var limits = []struct {
	name string
	most int
}{
	{"application-load-balancers", maxLoadBalancers},
	{"network-load-balancers", maxLoadBalancers},
	{"target-groups", maxTargetGroups},
	{"targets-per-application-load-balancer", maxTargets},
	{"targets-per-network-load-balancer", maxTargets},
	{"listeners-per-application-load-balancer", maxListeners},
	{"listeners-per-network-load-balancer", maxListeners},
	{"rules-per-application-load-balancer", maxRules},
	{"certificates-per-application-load-balancer", maxCertificates},
	{"target-groups-per-action-on-application-load-balancer", 5},
	{"target-groups-per-action-on-network-load-balancer", 1},
	{"condition-values-per-alb-rule", 5},
}

// DescribeAccountLimits lists the quotas.
func (s *Service) DescribeAccountLimits(_ context.Context, in *api.DescribeAccountLimitsInput) (*api.DescribeAccountLimitsOutput, error) {
	var rows []types.Limit
	for _, l := range limits {
		rows = append(rows, types.Limit{Name: &l.name, Max: new(strconv.Itoa(l.most))})
	}
	page, next, err := account.Ordered(listing("DescribeAccountLimits"), rows, in.PageSize, in.Marker, func(l types.Limit) string { return *l.Name })
	if err != nil {
		return nil, err
	}
	return &api.DescribeAccountLimitsOutput{Limits: page, NextMarker: next}, nil
}

// kindOfARN returns the type of the resource in an ARN.
func kindOfARN(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 || parts[2] != "elasticloadbalancing" {
		return ""
	}
	kind, _, _ := strings.Cut(parts[5], "/")
	return kind
}

// DescribeCapacityReservation is here for clients that ask: nothing is reserved, since a proxy takes what there is.
func (s *Service) DescribeCapacityReservation(
	_ context.Context, in *api.DescribeCapacityReservationInput,
) (*api.DescribeCapacityReservationOutput, error) {
	if _, err := findLoadBalancer(s.store.View(), in.LoadBalancerArn); err != nil {
		return nil, err
	}
	return &api.DescribeCapacityReservationOutput{CapacityReservationState: []types.ZonalCapacityReservationState{}}, nil
}
