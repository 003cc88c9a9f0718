package ec2

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// kind is a kind of resource that has a table of its own: how its rows are found, filtered and tagged.
type kind[R any] struct {
	name   types.ResourceType // what tags and filters call it, such as vpc
	prefix string             // of its ids, such as vpc
	code   string             // of the error for an id that there isn't, such as InvalidVpcID.NotFound
	text   string             // of that error, with the id for %s
	table  func(*state.View) state.Table[*R]
	of     func(*R) (id *string, tags *[]types.Tag)
	fields fields[R]
}

// maxNetworkPage is the largest page of the operations that describe a network.
const maxNetworkPage = 1000

// get returns the row with an id that a call gives as one of its parameters.
func (k kind[R]) get(v *state.View, id *string, parameter string) (*R, error) {
	if aws.ToString(id) == "" {
		return nil, missing(parameter)
	}
	if row := k.table(v).Get(*id); row != nil {
		return row, nil
	}
	return nil, k.absent(*id)
}

func (k kind[R]) absent(id string) error { return refuse(k.code, k.text, id) }

// change puts a changed copy of the row with an id. The copy is shallow: what apply changes below the top, it replaces.
func (k kind[R]) change(tx *state.Tx, id *string, parameter string, apply func(*R) error) error {
	old, err := k.get(tx.View, id, parameter)
	if err != nil {
		return err
	}
	row := new(*old)
	if err := apply(row); err != nil {
		return err
	}
	k.table(tx.View).Put(row)
	return nil
}

// query is what the Describe calls have in common.
type query struct {
	operation string
	ids       []string
	filters   []types.Filter
	size      *int32
	token     *string
	dryRun    *bool
}

// describe returns the rows that a call asks for, in the order of their ids.
func (k kind[R]) describe(v *state.View, q query) (rows []*R, next *string, err error) {
	match, err := matcher(q.filters, k.fields, func(r *R) []types.Tag { _, tags := k.of(r); return *tags })
	if err != nil {
		return nil, nil, err
	}
	if err := checkDryRun(q.dryRun); err != nil {
		return nil, nil, err
	}
	table := k.table(v)
	for _, id := range q.ids {
		if table.Get(id) == nil {
			return nil, nil, k.absent(id)
		}
	}
	for row := range table.All() {
		id, _ := k.of(row)
		if (len(q.ids) == 0 || slices.Contains(q.ids, *id)) && match(row) {
			rows = append(rows, row)
		}
	}
	return account.Sorted(listing(q.operation, maxNetworkPage), rows, q.size, q.token, func(r *R) string { id, _ := k.of(r); return *id })
}

// each calls yield with the tags of every row.
func (k kind[R]) each(v *state.View, yield func(kind types.ResourceType, id *string, tags []types.Tag)) {
	for row := range k.table(v).All() {
		id, tags := k.of(row)
		yield(k.name, id, *tags)
	}
}

// retag changes the tags of the row with an id.
func (k kind[R]) retag(tx *state.Tx, id string, change func([]types.Tag) []types.Tag) error {
	return k.change(tx, &id, "resourceIdSet", func(row *R) error {
		_, tags := k.of(row)
		*tags = change(slices.Clone(*tags))
		if len(withoutSystemTags(*tags)) > account.MaxTags {
			return tooManyTags()
		}
		return nil
	})
}

// idPrefix returns the prefix of the kind's ids.
func (k kind[R]) idPrefix() string { return k.prefix }

// show returns rows as calls show them.
func show[R, T any](rows []*R, as func(*R) T) []T {
	out := make([]T, 0, len(rows))
	for _, r := range rows {
		out = append(out, as(r))
	}
	return out
}

// write runs a change in a transaction. A dry run is refused at its end, when nothing else was wrong, and so changes nothing.
func (s *Service) write(ctx context.Context, dryRun *bool, change func(tx *state.Tx) error) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		return checkDryRun(dryRun)
	})
}

// missing refuses a call without a parameter that it needs. EC2 names parameters with a small letter.
func missing(parameter string) error {
	return refuse("MissingParameter", "The request must contain the parameter %s", strings.ToLower(parameter[:1])+parameter[1:])
}

// checkMembers refuses what a call asks for besides the members that Pintle knows.
func checkMembers(in any, known ...string) error {
	if name := asked(reflect.ValueOf(in).Elem(), append(known, "DryRun", "ResultMetadata")); name != "" {
		return refuse("UnsupportedOperation", "%s: Pintle's networks don't have this.", name)
	}
	return nil
}

// newTags returns the tags that a call gives the resource that it makes.
func newTags(ctx context.Context, specifications []types.TagSpecification, kind types.ResourceType) ([]types.Tag, error) {
	tags := []types.Tag{}
	for _, t := range specifications {
		if t.ResourceType != kind {
			return nil, refuse("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", t.ResourceType)
		}
		tags = append(tags, t.Tags...)
	}
	return tags, checkNewTags(ctx, tags)
}

// checkRoom refuses one more of what there may be only so many of.
func checkRoom(have, most int, code, what string) error {
	if have >= most {
		return refuse(code, "The maximum number of %s has been reached.", what)
	}
	return nil
}

// count returns how many rows there are.
func count[R any](rows func(func(*R) bool)) (n int) {
	for range rows {
		n++
	}
	return n
}

// yes returns what a filter on a boolean looks at.
func yes(b *bool) []string {
	if aws.ToBool(b) {
		return []string{"true"}
	}
	return []string{"false"}
}

// values returns what a filter on the members of a list looks at.
func values[T any](list []T, of func(*T) *string) (out []string) {
	for i := range list {
		out = append(out, optional(of(&list[i]))...)
	}
	return out
}

// with returns the kind with one more filter, on what follows from other rows.
func (k kind[R]) with(filter string, of func(*R) []string) kind[R] {
	k.fields = maps.Clone(k.fields)
	k.fields[filter] = of
	return k
}
