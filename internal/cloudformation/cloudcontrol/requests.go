package cloudcontrol

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/underway"
	"github.com/pintle/pintle/internal/state"
)

// maxOpen is how many requests can be under way at once.
const maxOpen = 500

// CreateResource begins to make a resource.
func (s *Service) CreateResource(ctx context.Context, in *cloudcontrol.CreateResourceInput) (*cloudcontrol.CreateResourceOutput, error) {
	kind, err := typed(in.TypeName, in.TypeVersionId, "CREATE")
	if err != nil {
		return nil, err
	}
	if err := refuseRole(in.RoleArn); err != nil {
		return nil, err
	}
	desired, err := object(*in.DesiredState)
	if err != nil {
		return nil, err
	}
	if err := check(kind, desired, false); err != nil {
		return nil, err
	}
	r := s.request(ctx, types.OperationCreate, in.TypeName, in.ClientToken, *in.DesiredState)
	if r.After, err = s.loop.Seal(r.Token, desired); err != nil {
		return nil, err
	}
	r, err = s.keep(ctx, r)
	if err != nil {
		return nil, err
	}
	return &cloudcontrol.CreateResourceOutput{ProgressEvent: progress(r)}, nil
}

// UpdateResource begins to change a resource, by a patch of what it's now.
func (s *Service) UpdateResource(ctx context.Context, in *cloudcontrol.UpdateResourceInput) (*cloudcontrol.UpdateResourceOutput, error) {
	kind, err := typed(in.TypeName, in.TypeVersionId, "UPDATE")
	if err != nil {
		return nil, err
	}
	if err := refuseRole(in.RoleArn); err != nil {
		return nil, err
	}
	r := s.request(ctx, types.OperationUpdate, in.TypeName, in.ClientToken, *in.Identifier, *in.PatchDocument)
	if again, err := repeated(s.store.View(), r); again != nil || err != nil {
		return &cloudcontrol.UpdateResourceOutput{ProgressEvent: shown(again)}, err
	}
	f, err := s.find(s.as(ctx), *in.TypeName, kind, *in.Identifier)
	if err != nil {
		return nil, err
	}
	after, err := f.patched(*in.PatchDocument)
	if err != nil {
		return nil, err
	}
	if err := f.refuseReplacement(*in.TypeName, after); err != nil {
		return nil, err
	}
	r.Identifier, r.PhysicalID = *in.Identifier, f.id
	if r.Before, err = s.loop.Seal(r.Token, f.live); err != nil {
		return nil, err
	}
	if r.After, err = s.loop.Seal(r.Token, after); err != nil {
		return nil, err
	}
	r, err = s.keep(ctx, r)
	if err != nil {
		return nil, err
	}
	return &cloudcontrol.UpdateResourceOutput{ProgressEvent: progress(r)}, nil
}

// patched returns a resource's properties as a patch makes them.
func (f *found) patched(document string) (map[string]any, error) {
	ops, err := parsePatch(document)
	if err != nil {
		return nil, account.Refuse("ValidationException", "%s", err)
	}
	got, err := ops.apply(f.live)
	if err != nil {
		return nil, &types.InvalidRequestException{Message: account.Message("%s", err)}
	}
	after, isObject := got.(map[string]any)
	if !isObject {
		return nil, &types.InvalidRequestException{Message: account.Message("The patch leaves no JSON object")}
	}
	return after, check(f.kind, after, true)
}

// refuseReplacement refuses to change what only a new resource can have.
func (f *found) refuseReplacement(name string, after map[string]any) error {
	var fixed []string
	changes := f.kind.Changes(f.live, after)
	for _, c := range changes {
		if c.Replaces {
			fixed = append(fixed, "/properties/"+c.Name)
		}
	}
	switch {
	case len(fixed) == 0:
		return nil
	case len(fixed) == len(changes) && !f.kind.IsUpdatable():
		return unsupported(name, "UPDATE")
	}
	return &types.NotUpdatableException{Message: account.Message("Invalid patch update: createOnlyProperties [%s] cannot be updated", strings.Join(fixed, ", "))}
}

// DeleteResource begins to delete a resource.
func (s *Service) DeleteResource(ctx context.Context, in *cloudcontrol.DeleteResourceInput) (*cloudcontrol.DeleteResourceOutput, error) {
	kind, err := typed(in.TypeName, in.TypeVersionId, "DELETE")
	if err != nil {
		return nil, err
	}
	if err := refuseRole(in.RoleArn); err != nil {
		return nil, err
	}
	r := s.request(ctx, types.OperationDelete, in.TypeName, in.ClientToken, *in.Identifier)
	if again, err := repeated(s.store.View(), r); again != nil || err != nil {
		return &cloudcontrol.DeleteResourceOutput{ProgressEvent: shown(again)}, err
	}
	f, err := s.find(s.as(ctx), *in.TypeName, kind, *in.Identifier)
	if err != nil {
		return nil, err
	}
	r.Identifier, r.PhysicalID = *in.Identifier, f.id
	if r.Before, err = s.loop.Seal(r.Token, f.live); err != nil {
		return nil, err
	}
	r, err = s.keep(ctx, r)
	if err != nil {
		return nil, err
	}
	return &cloudcontrol.DeleteResourceOutput{ProgressEvent: progress(r)}, nil
}

// refuseRole refuses another role than the caller's: whoever asks needs the permissions itself.
func refuseRole(arn *string) error {
	if arn == nil {
		return nil
	}
	return account.Refuse("ValidationException", "Pintle makes the calls with the permissions of whoever asks: leave RoleArn out.")
}

// request returns a new request.
func (s *Service) request(ctx context.Context, op types.Operation, name, clientToken *string, asked ...string) *state.ResourceRequest {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{string(op), *name}, asked...), "\x00")))
	return &state.ResourceRequest{
		Token:       state.NewUUID(),
		ClientToken: aws.ToString(clientToken),
		Asked:       hex.EncodeToString(sum[:]),
		Type:        *name,
		Operation:   op,
		Status:      types.OperationStatusPending,
		At:          s.account.Now(),
		By:          underway.CallerOf(ctx),
	}
}

// repeated returns the request that had a client's token first, if one did.
func repeated(v *state.View, r *state.ResourceRequest) (*state.ResourceRequest, error) {
	if r.ClientToken == "" {
		return nil, nil
	}
	for first := range v.ResourceRequests.By(state.RequestsByClientToken, r.ClientToken) {
		if first.Asked != r.Asked {
			return nil, &types.ClientTokenConflictException{
				Message: account.Message("The client token %s was used for another request", r.ClientToken),
			}
		}
		return first, nil
	}
	return nil, nil
}

// shown is progress of a request that may be nil.
func shown(r *state.ResourceRequest) *types.ProgressEvent {
	if r == nil {
		return nil
	}
	return progress(r)
}

// keep keeps a request, unless it's one that came before.
func (s *Service) keep(ctx context.Context, r *state.ResourceRequest) (kept *state.ResourceRequest, err error) {
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		first, err := repeated(tx.View, r)
		if first != nil || err != nil {
			kept = first
			return err
		}
		under := 0
		for other := range tx.ResourceRequests.By(state.OpenRequests, "open") {
			if under++; r.PhysicalID != "" && other.Type == r.Type && other.PhysicalID == r.PhysicalID {
				return &types.ConcurrentOperationException{
					Message: account.Message("Another operation on %s is under way: request %s", r.Identifier, other.Token),
				}
			}
		}
		if under >= maxOpen {
			return &types.ThrottlingException{Message: account.Message("%d requests are under way", under)}
		}
		state.ForgetRequests(tx)
		tx.ResourceRequests.Put(r)
		kept = r
		return nil
	})
	return kept, err
}

// known returns a request.
func known(v *state.View, token string) (*state.ResourceRequest, error) {
	if r := v.ResourceRequests.Get(token); r != nil {
		return r, nil
	}
	return nil, &types.RequestTokenNotFoundException{Message: account.Message("Request with token %s was not found", token)}
}

// GetResourceRequestStatus tells how far a request has come.
func (s *Service) GetResourceRequestStatus(
	_ context.Context, in *cloudcontrol.GetResourceRequestStatusInput,
) (*cloudcontrol.GetResourceRequestStatusOutput, error) {
	r, err := known(s.store.View(), *in.RequestToken)
	if err != nil {
		return nil, err
	}
	return &cloudcontrol.GetResourceRequestStatusOutput{ProgressEvent: progress(r)}, nil
}

// CancelResourceRequest has nothing more done for a request. What was done already stays.
func (s *Service) CancelResourceRequest(
	ctx context.Context, in *cloudcontrol.CancelResourceRequestInput,
) (*cloudcontrol.CancelResourceRequestOutput, error) {
	var next *state.ResourceRequest
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		r, err := known(tx.View, *in.RequestToken)
		if err != nil {
			return err
		}
		if r.Status != types.OperationStatusPending && r.Status != types.OperationStatusInProgress {
			return account.Refuse("ValidationException", "Request %s is %s and can't be canceled", r.Token, r.Status)
		}
		canceled := *r
		canceled.Status, canceled.At = types.OperationStatusCancelInProgress, s.account.Now()
		next = &canceled
		tx.ResourceRequests.Put(next)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudcontrol.CancelResourceRequestOutput{ProgressEvent: progress(next)}, nil
}

// ListResourceRequests lists requests, the latest first.
func (s *Service) ListResourceRequests(
	_ context.Context, in *cloudcontrol.ListResourceRequestsInput,
) (*cloudcontrol.ListResourceRequestsOutput, error) {
	var filter types.ResourceRequestStatusFilter
	if in.ResourceRequestStatusFilter != nil {
		filter = *in.ResourceRequestStatusFilter
	}
	var rows []*state.ResourceRequest
	for r := range s.store.View().ResourceRequests.All() {
		isWanted := len(filter.Operations) == 0 || slices.Contains(filter.Operations, r.Operation)
		if isWanted && (len(filter.OperationStatuses) == 0 || slices.Contains(filter.OperationStatuses, r.Status)) {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b *state.ResourceRequest) int { return b.At.Compare(a.At) })
	page, next, err := account.Ordered(listing("ListResourceRequests"), rows, in.MaxResults, in.NextToken,
		func(r *state.ResourceRequest) string { return r.Token })
	if err != nil {
		return nil, err
	}
	out := &cloudcontrol.ListResourceRequestsOutput{ResourceRequestStatusSummaries: []types.ProgressEvent{}, NextToken: next}
	for _, r := range page {
		out.ResourceRequestStatusSummaries = append(out.ResourceRequestStatusSummaries, *progress(r))
	}
	return out, nil
}
