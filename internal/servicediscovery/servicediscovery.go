// Package servicediscovery is AWS Cloud Map: namespaces, services and their instances, which others find by DiscoverInstances or, in private
// DNS namespaces, by names that nodes answer to their tasks. A Service has the methods of the SDK's client, over the store. It answers no
// names itself, and the instances of ECS's tasks are kept by the state, together with the tasks.
package servicediscovery

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// Options are the account and region of the service.
type Options struct {
	account.Account
}

// Service is AWS Cloud Map for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service { return &Service{store, opts} }

// The most that there may be: "AWS Cloud Map quotas". Pintle gives none of them more on request, so where AWS would, it begins with more.
const (
	maxNamespaces    = 500
	maxServices      = 1000 // of a namespace
	maxInstances     = 1000 // of a service, beside ECS's tasks
	maxAttributes    = 30
	maxAttributeSize = 5000 // characters of an instance's names and values
)

// now returns the time to the millisecond, the precision of rows.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

// newOperationID returns a random id of an operation, in AWS's form: a UUID, and a short word after it.
func newOperationID() string {
	n, _ := rand.Int(rand.Reader, big.NewInt(1<<40)) //nolint:errcheck // it never fails
	return state.NewUUID() + "-" + n.Text(36)
}

// hash tells requests with the same id apart.
func hash(in any) []byte {
	b, _ := json.Marshal(in) //nolint:errcheck // structs of strings and numbers can't fail
	sum := sha256.Sum256(b)
	return sum[:]
}

// request is what a call asks to be changed.
type request struct {
	kind types.OperationType
	id   *string // the CreatorRequestId or UpdaterRequestId
	in   any
}

// operate runs a change once for each request id, and returns the id of its operation.
func (s *Service) operate(ctx context.Context, r request, change func(*state.Tx) (map[string]string, error)) (*string, error) {
	var id *string
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if same, err := earlier(tx.View, r); same != nil || err != nil {
			id = same
			return err
		}
		targets, err := change(tx)
		if err != nil {
			return err
		}
		now := s.now()
		o := &state.DiscoveryOperation{
			Operation: types.Operation{
				Id:           new(newOperationID()),
				OwnerAccount: new(s.opts.ID),
				Type:         r.kind,
				Status:       types.OperationStatusSuccess,
				CreateDate:   &now,
				UpdateDate:   &now,
				Targets:      targets,
			},
			RequestID: aws.ToString(r.id),
			Request:   hash(r.in),
		}
		tx.DiscoveryOperations.Put(o)
		id = o.Id
		return nil
	})
	return id, err
}

// earlier returns the operation that the same request has made already, or nil. Another request with its id is refused.
func earlier(v *state.View, r request) (*string, error) {
	if aws.ToString(r.id) == "" {
		return nil, nil
	}
	for o := range v.DiscoveryOperations.By(state.OperationsByRequest, *r.id) {
		switch {
		case o.Type != r.kind:
		case slices.Equal(o.Request, hash(r.in)):
			return o.Id, nil
		default:
			return nil, &types.DuplicateRequest{
				Message:              account.Message("The request id %q was used for another request", *r.id),
				DuplicateOperationId: o.Id,
			}
		}
	}
	return nil, nil
}

// withoutARN returns the id of a namespace or service, which callers may also name by its ARN.
func (s *Service) withoutARN(kind string, id *string) string {
	if name, ok := s.opts.ResourceOf("servicediscovery", kind+"/", aws.ToString(id)); ok {
		return name
	}
	return aws.ToString(id)
}

// namespace returns the namespace with an id or an ARN.
func (s *Service) namespace(v *state.View, id *string) (*state.Namespace, error) {
	row := v.Namespaces.Get(s.withoutARN("namespace", id))
	if row == nil {
		return nil, &types.NamespaceNotFound{Message: account.Message("Namespace with id %s not found.", aws.ToString(id))}
	}
	return row, nil
}

// service returns the service with an id or an ARN.
func (s *Service) service(v *state.View, id *string) (*state.DiscoveryService, error) {
	row := v.DiscoveryServices.Get(s.withoutARN("service", id))
	if row == nil {
		return nil, &types.ServiceNotFound{Message: account.Message("Service with id %s not found.", aws.ToString(id))}
	}
	return row, nil
}

// instance returns an instance of a service.
func instance(v *state.View, s *state.DiscoveryService, id *string) (*state.DiscoveryInstance, error) {
	row := v.DiscoveryInstances.Get(state.InstanceKey(s.ID, aws.ToString(id)))
	if row == nil {
		return nil, &types.InstanceNotFound{Message: account.Message("Instance with id %s not found.", aws.ToString(id))}
	}
	return row, nil
}

func invalid(format string, args ...any) error {
	return &types.InvalidInput{Message: account.Message(format, args...)}
}

func inUse(format string, args ...any) error {
	return &types.ResourceInUse{Message: account.Message(format, args...)}
}

func exceeded(format string, args ...any) error {
	return &types.ResourceLimitExceeded{Message: account.Message(format, args...)}
}

// listing describes the pages of an operation.
func listing(operation string) account.List {
	return account.List{
		Kind:     "servicediscovery:" + operation,
		Most:     100,
		BadLimit: func(n int) error { return invalid("MaxResults must be between 1 and 100, not %d", n) },
		BadToken: func() error { return invalid("The NextToken isn't one that this operation returned") },
	}
}

// sameName reports whether two names are the same to DNS.
func sameName(a, b string) bool { return strings.EqualFold(a, b) }
