package ec2

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ec2/prefixlist"
)

// prefixList returns the prefix list with an id, or nil.
func (s *Service) prefixList(id string) *types.PrefixList { return prefixlist.Find(s.opts.Region, id) }

func noPrefixList(id string) error {
	return refuse("InvalidPrefixListID.NotFound", "The prefix list ID '%s' does not exist", id)
}

var prefixListFields = fields[types.PrefixList]{
	"prefix-list-id":   func(l *types.PrefixList) []string { return optional(l.PrefixListId) },
	"prefix-list-name": func(l *types.PrefixList) []string { return optional(l.PrefixListName) },
}

// pickPrefixLists returns the prefix lists that a call asks for.
func (s *Service) pickPrefixLists(q query, of fields[types.PrefixList]) ([]types.PrefixList, *string, error) {
	match, err := matcher(q.filters, of, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range q.ids {
		if s.prefixList(id) == nil {
			return nil, nil, noPrefixList(id)
		}
	}
	if err := checkDryRun(q.dryRun); err != nil {
		return nil, nil, err
	}
	all := slices.DeleteFunc(prefixlist.All(s.opts.Region), func(l types.PrefixList) bool {
		return len(q.ids) > 0 && !slices.Contains(q.ids, *l.PrefixListId) || !match(&l)
	})
	return account.Sorted(listing(q.operation, maxNetworkPage), all, q.size, q.token, func(l types.PrefixList) string { return *l.PrefixListId })
}

// DescribePrefixLists describes AWS's prefix lists with their blocks.
func (s *Service) DescribePrefixLists(_ context.Context, in *ec2.DescribePrefixListsInput) (*ec2.DescribePrefixListsOutput, error) {
	all, next, err := s.pickPrefixLists(
		query{"DescribePrefixLists", in.PrefixListIds, in.Filters, in.MaxResults, in.NextToken, in.DryRun}, prefixListFields)
	if err != nil {
		return nil, err
	}
	return &ec2.DescribePrefixListsOutput{PrefixLists: all, NextToken: next}, nil
}

// DescribeManagedPrefixLists describes AWS's prefix lists. There are no others.
func (s *Service) DescribeManagedPrefixLists(
	_ context.Context, in *ec2.DescribeManagedPrefixListsInput,
) (*ec2.DescribeManagedPrefixListsOutput, error) {
	of := maps.Clone(prefixListFields)
	of["owner-id"] = func(*types.PrefixList) []string { return []string{"AWS"} }
	all, next, err := s.pickPrefixLists(
		query{"DescribeManagedPrefixLists", in.PrefixListIds, in.Filters, in.MaxResults, in.NextToken, in.DryRun}, of)
	if err != nil {
		return nil, err
	}
	out := &ec2.DescribeManagedPrefixListsOutput{PrefixLists: []types.ManagedPrefixList{}, NextToken: next}
	for _, l := range all {
		out.PrefixLists = append(out.PrefixLists, types.ManagedPrefixList{
			PrefixListId:   l.PrefixListId,
			PrefixListName: l.PrefixListName,
			PrefixListArn:  new("arn:aws:ec2:" + s.opts.Region + ":aws:prefix-list/" + *l.PrefixListId),
			AddressFamily:  aws.String("IPv4"),
			OwnerId:        aws.String("AWS"),
			State:          types.PrefixListStateCreateComplete,
			Tags:           []types.Tag{},
		})
	}
	return out, nil
}

// GetManagedPrefixListEntries returns the blocks of a prefix list.
func (s *Service) GetManagedPrefixListEntries(
	_ context.Context, in *ec2.GetManagedPrefixListEntriesInput,
) (*ec2.GetManagedPrefixListEntriesOutput, error) {
	l := s.prefixList(aws.ToString(in.PrefixListId))
	if l == nil {
		return nil, noPrefixList(aws.ToString(in.PrefixListId))
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	if in.TargetVersion != nil {
		return nil, refuse("InvalidParameterValue", "TargetVersion: prefix lists that are AWS's have no versions.")
	}
	blocks, next, err := account.Sorted(listing("GetManagedPrefixListEntries", 100), slices.Sorted(slices.Values(l.Cidrs)), in.MaxResults,
		in.NextToken, func(block string) string { return block })
	if err != nil {
		return nil, err
	}
	out := &ec2.GetManagedPrefixListEntriesOutput{Entries: []types.PrefixListEntry{}, NextToken: next}
	for _, block := range blocks {
		out.Entries = append(out.Entries, types.PrefixListEntry{Cidr: &block})
	}
	return out, nil
}
