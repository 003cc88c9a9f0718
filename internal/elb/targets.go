package elb

import (
	"context"
	"net/netip"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2 "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	api "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/state"
)

// maxTargets is the quota of a target group's targets.
const maxTargets = 1000

// RegisterTargets registers targets. One that drains comes back.
func (s *Service) RegisterTargets(ctx context.Context, in *api.RegisterTargetsInput) (*api.RegisterTargetsOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		g, err := findTargetGroup(tx.View, in.TargetGroupArn)
		if err != nil {
			return err
		}
		for _, t := range in.Targets {
			if err := checkTarget(tx.View, g, t); err != nil {
				return err
			}
			tx.RegisterTarget(state.Target{
				Group:      *g.TargetGroupArn,
				ID:         *t.Id,
				Port:       portOf(g, t),
				Zone:       text(t.AvailabilityZone),
				Registered: s.now(),
			})
		}
		n := 0
		for range tx.TargetsOf(*g.TargetGroupArn) {
			n++
		}
		if n > maxTargets {
			return &types.TooManyTargetsException{Message: account.Message("A target group can have at most %d targets", maxTargets)}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.RegisterTargetsOutput{}, nil
}

// portOf returns a target's port: its own, or its group's.
func portOf(g *state.TargetGroup, t types.TargetDescription) int32 {
	if t.Port != nil {
		return *t.Port
	}
	return aws.ToInt32(g.Port)
}

func badTarget(format string, args ...any) error {
	return &types.InvalidTargetException{Message: account.Message(format, args...)}
}

// checkTarget refuses what can't be a target of a group.
func checkTarget(v *state.View, g *state.TargetGroup, t types.TargetDescription) error {
	if t.QuicServerId != nil {
		return notSupported("QuicServerId")
	}
	if g.TargetType != types.TargetTypeEnumInstance {
		a, err := netip.ParseAddr(*t.Id)
		switch {
		case err != nil:
			return invalid("The IP address '%s' is not a valid IPv4 address", *t.Id)
		case !a.Is4():
			return invalid("The IP address '%s' is not a valid IPv4 address", *t.Id)
		case a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast(): // there is the metadata of the balancer's own machine
			return invalid("The IP address '%s' cannot be a target", *t.Id)
		case !isInside(v, a):
			return invalid("The IP address '%s' is neither private (RFC 1918, RFC 6598) nor in the CIDR block of a VPC", *t.Id)
		}
		return nil
	}
	if t.AvailabilityZone != nil {
		return invalid("You cannot specify an Availability Zone for targets of type 'instance'")
	}
	if i := v.Instances.Get(*t.Id); i != nil {
		if i.Name() != ec2.InstanceStateNameRunning && i.Name() != ec2.InstanceStateNamePending {
			return badTarget("The following targets are not in a running state and cannot be registered: '%s'", *t.Id)
		}
		return nil
	}
	for range v.ContainerInstances.By(state.InstancesByMachine, *t.Id) {
		return nil // a machine that Pintle didn't start
	}
	return badTarget("The following targets do not exist: '%s'", *t.Id)
}

// sharedSpace is RFC 6598's: https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-target-groups.html#target-type
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

// isInside reports whether an address may be a target: a private one, one of a VPC, or one of the balancer's machine, which AWS has none of.
func isInside(v *state.View, a netip.Addr) bool {
	if a.IsPrivate() || a.IsLoopback() || sharedSpace.Contains(a) {
		return true
	}
	for vpc := range v.VPCs.All() {
		if block, err := netip.ParsePrefix(aws.ToString(vpc.CidrBlock)); err == nil && block.Contains(a) {
			return true
		}
	}
	return false
}

// DeregisterTargets lets targets drain. Those without a port are meant with all ports that they have.
func (s *Service) DeregisterTargets(ctx context.Context, in *api.DeregisterTargetsInput) (*api.DeregisterTargetsOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		g, err := findTargetGroup(tx.View, in.TargetGroupArn)
		if err != nil {
			return err
		}
		for _, given := range in.Targets {
			for t := range tx.TargetsOf(*g.TargetGroupArn) {
				if t.ID == *given.Id && (given.Port == nil || *given.Port == t.Port) {
					tx.DeregisterTarget(t, s.now())
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeregisterTargetsOutput{}, nil
}

// DescribeTargetHealth lists a group's targets with their health, also those that drain.
func (s *Service) DescribeTargetHealth(_ context.Context, in *api.DescribeTargetHealthInput) (*api.DescribeTargetHealthOutput, error) {
	v := s.store.View()
	g, err := findTargetGroup(v, in.TargetGroupArn)
	if err != nil {
		return nil, err
	}
	used := len(v.LoadBalancersOf()[*g.TargetGroupArn]) > 0
	out := &api.DescribeTargetHealthOutput{TargetHealthDescriptions: []types.TargetHealthDescription{}}
	if len(in.Targets) == 0 {
		for t := range v.TargetsOf(*g.TargetGroupArn) {
			out.TargetHealthDescriptions = append(out.TargetHealthDescriptions, describeTarget(g, t, healthOf(t, used)))
		}
		return out, nil
	}
	for _, given := range in.Targets {
		port := portOf(g, given)
		t := v.Targets.Get(state.TargetKey(*g.TargetGroupArn, *given.Id, port))
		h := types.TargetHealth{
			State:       types.TargetHealthStateEnumUnused,
			Reason:      types.TargetHealthReasonEnumNotRegistered,
			Description: aws.String("Target is not registered to the target group"),
		}
		if t == nil {
			t = &state.Target{ID: *given.Id, Port: port}
		} else {
			h = healthOf(t, used)
		}
		out.TargetHealthDescriptions = append(out.TargetHealthDescriptions, describeTarget(g, t, h))
	}
	return out, nil
}

func describeTarget(g *state.TargetGroup, t *state.Target, h types.TargetHealth) types.TargetHealthDescription {
	d := types.TargetHealthDescription{
		Target:          &types.TargetDescription{Id: &t.ID, Port: &t.Port},
		HealthCheckPort: g.HealthCheckPort,
		TargetHealth:    &h,
	}
	if text(g.HealthCheckPort) == routing.TrafficPort {
		d.HealthCheckPort = new(strconv.Itoa(int(t.Port)))
	}
	if t.Zone != "" {
		d.Target.AvailabilityZone = &t.Zone
	}
	return d
}

// healthOf returns a target's health. Before a balancer has said something, its registration is in progress.
func healthOf(t *state.Target, used bool) types.TargetHealth {
	said := func(h routing.Health) types.TargetHealth {
		return types.TargetHealth{
			State:       types.TargetHealthStateEnum(h.State),
			Reason:      types.TargetHealthReasonEnum(h.Reason),
			Description: &h.Description,
		}
	}
	switch {
	case t.Draining != nil:
		return said(routing.Deregistering())
	case !used:
		return said(routing.OutOfUse())
	case t.Health == nil:
		return types.TargetHealth{
			State:       types.TargetHealthStateEnumInitial,
			Reason:      types.TargetHealthReasonEnumRegistrationInProgress,
			Description: aws.String("Target registration is in progress"),
		}
	}
	return *t.Health
}
