package logs

import (
	"cmp"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/logs/filterpattern"
	"github.com/pintle/pintle/internal/logs/streams"
)

// compiled is a group's filters, ready to be applied to events.
type compiled struct {
	of            *streams.Filters
	metrics       []*metricFilter
	subscriptions []*subscription
}

// compiler keeps the compiled filters of groups, so that a call that appends events needn't parse patterns.
type compiler struct {
	mu     sync.Mutex
	groups map[string]*compiled // by the group's name
}

// get returns a group's compiled filters, or nil for a group without any.
func (c *compiler) get(g *streams.Group) (*compiled, error) {
	if g.Filters == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.groups[g.Name]; f != nil && f.of == g.Filters {
		return f, nil
	}
	f := &compiled{of: g.Filters}
	for i := range g.Filters.Metric {
		m, err := compileMetricFilter(&g.Filters.Metric[i])
		if err != nil {
			return nil, err
		}
		f.metrics = append(f.metrics, m)
	}
	for i := range g.Filters.Subscription {
		s, err := compileSubscription(&g.Filters.Subscription[i])
		if err != nil {
			return nil, err
		}
		f.subscriptions = append(f.subscriptions, s)
	}
	if c.groups == nil {
		c.groups = map[string]*compiled{}
	}
	c.groups[g.Name] = f
	return f, nil
}

// forget drops the filters of a group that was deleted.
func (c *compiler) forget(group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, group)
}

// changeFilters changes a copy of a group's filters and keeps it.
func (s *Service) changeFilters(group string, change func(*streams.Filters) error) error {
	return failure(s.store.UpdateGroup(group, func(g *streams.Group) error {
		next, err := changedFilters(g, change)
		if err == nil {
			g.Filters = next
		}
		return err
	}))
}

// tryFilters returns the error that changeFilters would, and keeps nothing.
func (s *Service) tryFilters(group string, change func(*streams.Filters) error) error {
	g, err := s.store.Group(group)
	if err != nil {
		return failure(err)
	}
	_, err = changedFilters(&g, change)
	return err
}

// checkClass refuses filters for a group whose class has none. A group keeps its class.
func (s *Service) checkClass(group string) error {
	g, err := s.store.Group(group)
	if err != nil {
		return failure(err)
	}
	if g.Class == string(types.LogGroupClassInfrequentAccess) || g.Class == string(types.LogGroupClassDelivery) {
		return &types.InvalidOperationException{Message: aws.String("Log groups of the class " + g.Class + " can't have filters.")}
	}
	return nil
}

// changedFilters returns what becomes of a group's filters: nil if none are left.
func changedFilters(g *streams.Group, change func(*streams.Filters) error) (*streams.Filters, error) {
	var next streams.Filters
	if g.Filters != nil {
		next.Metric = slices.Clone(g.Filters.Metric)
		next.Subscription = slices.Clone(g.Filters.Subscription)
	}
	if err := change(&next); err != nil {
		return nil, err
	}
	if len(next.Metric)+len(next.Subscription) == 0 {
		return nil, nil
	}
	return &next, nil
}

// putFilter puts a filter in its place in a list that is sorted by name, and reports whether the list has room for it. The filter that
// it replaces leaves it the time of its creation.
func putFilter[F any](list *[]F, f F, most int, of func(*F) (name *string, created **int64)) bool {
	name, created := of(&f)
	at, found := findFilter(*list, *name, of)
	if found {
		_, before := of(&(*list)[at])
		*created = *before
		(*list)[at] = f
		return true
	}
	if len(*list) >= most {
		return false
	}
	*list = slices.Insert(*list, at, f)
	return true
}

// deleteFilter deletes a filter from a list that is sorted by name.
func deleteFilter[F any](list *[]F, kind, name string, of func(*F) (name *string, created **int64)) error {
	at, found := findFilter(*list, name, of)
	if !found {
		return &types.ResourceNotFoundException{Message: aws.String("The specified " + kind + " filter does not exist.")}
	}
	*list = slices.Delete(*list, at, at+1)
	return nil
}

// findFilter returns the place of a filter in a list that is sorted by name.
func findFilter[F any](list []F, name string, of func(*F) (name *string, created **int64)) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(f F, name string) int {
		own, _ := of(&f)
		return cmp.Compare(*own, name)
	})
}

func limitExceeded() error {
	return &types.LimitExceededException{Message: aws.String("Resource limit exceeded.")}
}

// filterRequest is what PutMetricFilter and PutSubscriptionFilter have in common.
type filterRequest struct {
	pattern       *string
	onTransformed bool
	criteria      *string
	systemFields  []string
}

// check refuses what filters here can't do, and parses the pattern.
func (r filterRequest) check() (*filterpattern.Pattern, error) {
	switch {
	case r.onTransformed:
		return nil, invalidParameter("applyOnTransformedLogs is not supported: log groups here have no transformers.")
	case aws.ToString(r.criteria) != "":
		return nil, invalidParameter("fieldSelectionCriteria is not supported: there are no centralized logs here.")
	case len(r.systemFields) > 0:
		return nil, invalidParameter("System fields can't be emitted: there are no centralized logs here.")
	}
	pattern, err := filterpattern.Parse(aws.ToString(r.pattern))
	if err != nil {
		return nil, invalidParameter("Invalid filter pattern: %v", err)
	}
	return pattern, nil
}

// filtersOf lists the filters of a group, or of all.
func filtersOf[F any](s *Service, group *string, of func(*streams.Filters) []F) ([]F, error) {
	groups := s.store.Groups()
	if group != nil {
		g, err := s.store.Group(*group)
		if err != nil {
			return nil, failure(err)
		}
		groups = []streams.Group{g}
	}
	var out []F
	for _, g := range groups {
		if g.Filters != nil {
			out = append(out, of(g.Filters)...)
		}
	}
	return out, nil
}

// sortFilters sorts filters by their keys: first their names, then their groups'.
func sortFilters[F any](filters []F, key func(F) string) {
	account.SortBy(filters, key)
}
