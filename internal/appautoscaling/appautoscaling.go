// Package appautoscaling is Application Auto Scaling for the desired count of ECS services. A Service has the methods of
// the SDK's client, over the store. It stores scalable targets, policies and scheduled actions, and puts the policies'
// alarms. The loop in appautoscaling/scaler acts on them. It knows nothing of HTTP, and knows other services only as
// interfaces.
package appautoscaling

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
)

// Alarms stores the alarms of target tracking policies. It's CloudWatch.
type Alarms interface {
	PutMetricAlarm(context.Context, *cloudwatch.PutMetricAlarmInput, ...func(*cloudwatch.Options)) (*cloudwatch.PutMetricAlarmOutput, error)
	DeleteAlarms(context.Context, *cloudwatch.DeleteAlarmsInput, ...func(*cloudwatch.Options)) (*cloudwatch.DeleteAlarmsOutput, error)
}

// Services describes the services to scale. It's ECS.
type Services interface {
	DescribeServices(context.Context, *ecs.DescribeServicesInput, ...func(*ecs.Options)) (*ecs.DescribeServicesOutput, error)
}

// Options are the account and region of the service, and the services it calls.
type Options struct {
	account.Account
	// Alarms gets the policies' alarms. It's nil if nothing evaluates alarms.
	Alarms Alarms
	// Services is asked whether a service exists. If nil, every service does.
	Services Services
	// Reaction is how fast the alarms react. The zero value is scaling.Faithful.
	Reaction scaling.Reaction
}

// Service is Application Auto Scaling for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service {
	if opts.Reaction == (scaling.Reaction{}) {
		opts.Reaction = scaling.Faithful
	}
	return &Service{store, opts}
}

// now returns the time to the millisecond, the precision of rows.
func (s *Service) now() *time.Time {
	t := s.opts.Now().UTC().Truncate(time.Millisecond)
	return &t
}

// resource names what is scaled, as every call does.
type resource struct {
	namespace types.ServiceNamespace
	dimension types.ScalableDimension
	id        *string
}

// key returns the key of the resource's scalable target.
func (r resource) key() string { return state.ScalableTargetKey(r.namespace, r.dimension, r.id) }

// serviceID matches the id of an ECS service as a scalable target.
var serviceID = regexp.MustCompile(`^service/([a-zA-Z0-9_-]+)/([a-zA-Z0-9_-]+)$`)

// check refuses everything but the desired count of an ECS service.
func (r resource) check() error {
	if err := checkNamespace(r.namespace, r.dimension); err != nil {
		return err
	}
	if !serviceID.MatchString(*r.id) {
		return invalid("Unsupported service namespace, resource type or scalable dimension: resourceId %q is not of the form "+
			"service/CLUSTER/SERVICE", *r.id)
	}
	return nil
}

// checkNamespace refuses all namespaces and dimensions but those of ECS services. The dimension may be missing.
func checkNamespace(namespace types.ServiceNamespace, dimension types.ScalableDimension) error {
	switch {
	case namespace != types.ServiceNamespaceEcs:
		return invalid("Unsupported service namespace, resource type or scalable dimension: serviceNamespace must be ecs, not %q",
			namespace)
	case dimension != "" && dimension != types.ScalableDimensionECSServiceDesiredCount:
		return invalid("Unsupported service namespace, resource type or scalable dimension: scalableDimension must be "+
			"ecs:service:DesiredCount, not %q", dimension)
	}
	return nil
}

// checkListed refuses namespaces that AWS doesn't have, for calls that list things. Other namespaces than ECS's have nothing here.
func checkListed(namespace types.ServiceNamespace, dimension types.ScalableDimension) error {
	if namespace == types.ServiceNamespaceEcs {
		return checkNamespace(namespace, dimension)
	}
	if !slices.Contains(namespace.Values(), namespace) {
		return invalid("1 validation error detected: Value '%s' at 'serviceNamespace' failed to satisfy constraint: "+
			"Member must satisfy enum value set: %v", namespace, namespace.Values())
	}
	return nil
}

// parts returns the names of the cluster and the service.
func (r resource) parts() (cluster, service string) {
	p := serviceID.FindStringSubmatch(aws.ToString(r.id))
	return p[1], p[2]
}

// checkExists refuses a service that ECS doesn't have.
func (s *Service) checkExists(ctx context.Context, r resource) error {
	if s.opts.Services == nil {
		return nil
	}
	cluster, service := r.parts()
	out, err := s.opts.Services.DescribeServices(ctx, &ecs.DescribeServicesInput{Cluster: &cluster, Services: []string{service}})
	var refused smithy.APIError
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	if err != nil || len(out.Services) == 0 || aws.ToString(out.Services[0].Status) == "INACTIVE" {
		return invalid("ECS service doesn't exist: %s", *r.id)
	}
	return nil
}
