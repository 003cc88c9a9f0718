// Package elb is Elastic Load Balancing, version 2: application and network load balancers with their listeners, rules and target groups. A
// Service has the methods of the SDK's client, over the store. It only records what is wanted: package balancers hands that to the processes
// that carry traffic, and writes down what they say of the targets.
package elb

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// Options are the account and region of the service.
type Options struct {
	account.Account
	// Buckets takes the test files of access logs. It's S3.
	Buckets Buckets
}

// Buckets stores objects.
type Buckets interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// Service is Elastic Load Balancing for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service { return &Service{store, opts} }

// now returns the time to the millisecond, the precision of rows.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

// newID returns the id at the end of an ARN: 16 hexadecimal digits.
func newID() string {
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return hex.EncodeToString(b[:])
}

// arn returns the ARN of a resource.
func (s *Service) arn(format string, args ...any) string {
	return s.opts.ARN("elasticloadbalancing", fmt.Sprintf(format, args...))
}

// below returns the ARN of a listener below its load balancer's, or of a rule below its listener's.
func below(arn, kind, newKind, id string) string {
	return strings.Replace(arn, ":"+kind+"/", ":"+newKind+"/", 1) + "/" + id
}

// changeLoadBalancer changes a load balancer.
func (s *Service) changeLoadBalancer(
	ctx context.Context, arn *string, change func(*state.Tx, *state.LoadBalancer) error,
) (*state.LoadBalancer, error) {
	var row state.LoadBalancer
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := findLoadBalancer(tx.View, arn)
		if err != nil {
			return err
		}
		row = *old
		if err := change(tx, &row); err != nil {
			return err
		}
		tx.LoadBalancers.Put(&row)
		return nil
	})
	return &row, err
}

// changeListener changes a listener.
func (s *Service) changeListener(ctx context.Context, arn *string, change func(*state.Tx, *state.Listener) error) (*state.Listener, error) {
	var row state.Listener
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := findListener(tx.View, arn)
		if err != nil {
			return err
		}
		row = *old
		if err := change(tx, &row); err != nil {
			return err
		}
		tx.Listeners.Put(&row)
		return nil
	})
	return &row, err
}

// changeTargetGroup changes a target group.
func (s *Service) changeTargetGroup(
	ctx context.Context, arn *string, change func(*state.Tx, *state.TargetGroup) error,
) (*state.TargetGroup, error) {
	var row state.TargetGroup
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := findTargetGroup(tx.View, arn)
		if err != nil {
			return err
		}
		row = *old
		if err := change(tx, &row); err != nil {
			return err
		}
		tx.TargetGroups.Put(&row)
		return nil
	})
	return &row, err
}

func findLoadBalancer(v *state.View, arn *string) (*state.LoadBalancer, error) {
	row := v.LoadBalancers.Get(text(arn))
	if row == nil {
		return nil, noLoadBalancer(text(arn))
	}
	return row, nil
}

func findListener(v *state.View, arn *string) (*state.Listener, error) {
	row := v.Listeners.Get(text(arn))
	if row == nil {
		return nil, &types.ListenerNotFoundException{Message: account.Message("The specified listener does not exist.")}
	}
	return row, nil
}

func findTargetGroup(v *state.View, arn *string) (*state.TargetGroup, error) {
	row := v.TargetGroups.Get(text(arn))
	if row == nil {
		return nil, noTargetGroup(text(arn))
	}
	return row, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// listing describes the pages of an operation.
func listing(operation string) account.List {
	return account.List{
		Kind:     "elasticloadbalancing:" + operation,
		Most:     400,
		BadLimit: func(limit int) error { return invalid("PageSize must be between 1 and 400, not %d", limit) },
		BadToken: func() error { return invalid("The marker isn't one that this operation returned") },
	}
}
