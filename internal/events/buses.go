package events

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxBuses is the most buses of an account: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
const maxBuses = 100

// CreateEventBus makes a bus.
func (s *Service) CreateEventBus(ctx context.Context, in *eventbridge.CreateEventBusInput) (*eventbridge.CreateEventBusOutput, error) {
	name := aws.ToString(in.Name)
	switch {
	case in.EventSourceName != nil:
		return nil, unsupported("EventSourceName", "Pintle has no partner event sources.")
	case strings.Contains(name, "/"):
		return nil, invalid("Event bus name cannot contain '/' unless it is that of a partner event source.")
	}
	if err := checkExtras(in.KmsKeyIdentifier, in.DeadLetterConfig, in.LogConfig); err != nil {
		return nil, err
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	now := s.now()
	b := &state.EventBus{
		Name:        name,
		ARN:         s.busARN(name),
		Description: aws.ToString(in.Description),
		Tags:        in.Tags,
		Created:     &now,
		Changed:     &now,
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if name == state.DefaultBus || tx.EventBuses.Get(name) != nil {
			return refuse("ResourceAlreadyExistsException", "Event bus %s already exists.", name)
		}
		if tx.EventBuses.Len() >= maxBuses {
			return errTooMany
		}
		tx.EventBuses.Put(b)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &eventbridge.CreateEventBusOutput{EventBusArn: &b.ARN, Description: in.Description}, nil
}

// checkExtras refuses what buses can have on AWS only.
func checkExtras(key *string, dead *types.DeadLetterConfig, log *types.LogConfig) error {
	switch {
	case aws.ToString(key) != "":
		return unsupported("KmsKeyIdentifier", "Pintle encrypts no events.")
	case dead != nil && aws.ToString(dead.Arn) != "":
		return unsupported("DeadLetterConfig", "a bus has no dead-letter queue here; targets have.")
	case log != nil && log.Level != "" && log.Level != types.LevelOff:
		return unsupported("LogConfig", "a bus writes no logs here.")
	}
	return nil
}

// UpdateEventBus changes a bus's description.
func (s *Service) UpdateEventBus(ctx context.Context, in *eventbridge.UpdateEventBusInput) (*eventbridge.UpdateEventBusOutput, error) {
	if err := checkExtras(in.KmsKeyIdentifier, in.DeadLetterConfig, in.LogConfig); err != nil {
		return nil, err
	}
	var b *state.EventBus
	err := s.updateBus(ctx, in.Name, func(row *state.EventBus) error {
		if in.Description != nil {
			row.Description = *in.Description
		}
		b = row
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &eventbridge.UpdateEventBusOutput{Arn: &b.ARN, Name: &b.Name, Description: optional(b.Description)}, nil
}

// updateBus changes a bus in a transaction.
func (s *Service) updateBus(ctx context.Context, name *string, change func(*state.EventBus) error) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.bus(tx.View, name)
		if err != nil {
			return err
		}
		row := *old
		now := s.now()
		row.Changed = &now
		if err := change(&row); err != nil {
			return err
		}
		tx.EventBuses.Put(&row)
		return nil
	})
}

// DeleteEventBus removes a bus. One that isn't there counts as removed.
func (s *Service) DeleteEventBus(ctx context.Context, in *eventbridge.DeleteEventBusInput) (*eventbridge.DeleteEventBusOutput, error) {
	name, err := s.busName(in.Name)
	if err != nil {
		return nil, err
	}
	if name == state.DefaultBus {
		return nil, invalid("Cannot delete event bus %s.", name)
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		for range tx.EventRulesOf(name) {
			return invalid("Cannot delete event bus %s: it has rules.", name)
		}
		tx.EventBuses.Delete(name)
		return nil
	})
	return &eventbridge.DeleteEventBusOutput{}, err
}

// DescribeEventBus describes a bus.
func (s *Service) DescribeEventBus(_ context.Context, in *eventbridge.DescribeEventBusInput) (*eventbridge.DescribeEventBusOutput, error) {
	b, err := s.bus(s.store.View(), in.Name)
	if err != nil {
		return nil, err
	}
	return &eventbridge.DescribeEventBusOutput{
		Arn:              &b.ARN,
		Name:             &b.Name,
		Description:      optional(b.Description),
		Policy:           optional(b.Policy),
		CreationTime:     b.Created,
		LastModifiedTime: b.Changed,
	}, nil
}

// maxPage is the most that a call lists.
const maxPage = 100

func listing(operation string) account.List {
	return account.List{
		Kind:     "events:" + operation,
		Most:     maxPage,
		BadLimit: func(int) error { return invalid("Parameter Limit is not valid.") },
		BadToken: func() error { return invalid("Parameter NextToken is not valid.") },
	}
}

// ListEventBuses lists the buses, the default one too.
func (s *Service) ListEventBuses(_ context.Context, in *eventbridge.ListEventBusesInput) (*eventbridge.ListEventBusesOutput, error) {
	v := s.store.View()
	rows := []*state.EventBus{}
	if v.EventBuses.Get(state.DefaultBus) == nil {
		rows = append(rows, &state.EventBus{Name: state.DefaultBus, ARN: s.busARN(state.DefaultBus)})
	}
	for b := range v.EventBuses.All() {
		rows = append(rows, b)
	}
	kept := rows[:0]
	for _, b := range rows {
		if strings.HasPrefix(b.Name, aws.ToString(in.NamePrefix)) {
			kept = append(kept, b)
		}
	}
	account.SortBy(kept, func(b *state.EventBus) string { return b.Name })
	page, next, err := account.Sorted(listing("ListEventBuses"), kept, in.Limit, in.NextToken, func(b *state.EventBus) string { return b.Name })
	if err != nil {
		return nil, err
	}
	out := &eventbridge.ListEventBusesOutput{EventBuses: []types.EventBus{}, NextToken: next}
	for _, b := range page {
		out.EventBuses = append(out.EventBuses, types.EventBus{
			Arn:              &b.ARN,
			Name:             &b.Name,
			Description:      optional(b.Description),
			Policy:           optional(b.Policy),
			CreationTime:     b.Created,
			LastModifiedTime: b.Changed,
		})
	}
	return out, nil
}
