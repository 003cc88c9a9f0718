package state

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol/types"

	"github.com/pintle/pintle/internal/store"
)

// ResourceRequest is a request of the Cloud Control API to make, change or delete a resource.
type ResourceRequest struct {
	Token       string
	ClientToken string
	Asked       string // a hash of what was asked for, by which a repeated call is known
	Type        string // such as AWS::SQS::Queue
	Operation   types.Operation
	Status      types.OperationStatus
	At          time.Time // when the status was last changed
	Since       time.Time // when the work began; zero before that
	By          StackCaller
	Identifier  string // as Cloud Control has it; "" until it's known
	PhysicalID  string
	Before      []byte `json:",omitempty"` // the properties as they were, as JSON, encrypted
	After       []byte `json:",omitempty"` // as they are to be
	// Called is whether the call that makes or changes the resource has been made.
	Called    bool                   `json:",omitzero"`
	Message   string                 `json:",omitempty"`
	ErrorCode types.HandlerErrorCode `json:",omitempty"`
	EndedAt   *time.Time             `json:",omitempty"`
}

// Begun returns the request once its work has begun.
func (r *ResourceRequest) Begun(now time.Time) *ResourceRequest {
	next := *r
	next.Status, next.At, next.Since = types.OperationStatusInProgress, now, now
	return &next
}

// Made returns the request once the call was made that it asks for.
func (r *ResourceRequest) Made(physicalID string) *ResourceRequest {
	next := *r
	next.PhysicalID, next.Called = physicalID, true
	return &next
}

// Ended returns the request once it's over. What it was about is forgotten.
func (r *ResourceRequest) Ended(now time.Time, status types.OperationStatus, code types.HandlerErrorCode, message string) *ResourceRequest {
	next := *r
	next.Status, next.At, next.EndedAt, next.ErrorCode, next.Message = status, now, &now, code, message
	next.Before, next.After = nil, nil
	return &next
}

// IsOver reports whether nothing more happens.
func (r *ResourceRequest) IsOver() bool { return r.EndedAt != nil }

// MaxResourceRequests is how many requests are kept. AWS keeps them for seven days.
const (
	MaxResourceRequests  = 10_000
	keepResourceRequests = 7 * 24 * time.Hour
)

var (
	// OpenRequests finds the requests that aren't over, by "open".
	OpenRequests = Index[*ResourceRequest]{Name: "open", Value: func(r *ResourceRequest) string {
		if r.IsOver() {
			return ""
		}
		return "open"
	}}
	// RequestsByClientToken finds requests by their callers' own tokens.
	RequestsByClientToken = Index[*ResourceRequest]{Name: "client", Value: func(r *ResourceRequest) string { return r.ClientToken }}

	resourceRequests = &store.Definition[*ResourceRequest]{
		Name:     "resource_requests",
		Key:      func(r *ResourceRequest) string { return r.Token },
		Indexes:  []Index[*ResourceRequest]{OpenRequests, RequestsByClientToken},
		Lifetime: store.KeepFor(keepResourceRequests, func(r *ResourceRequest) *time.Time { return r.EndedAt }),
	}
)

// ForgetRequests makes room for another request: a tenth of those that are over goes, the oldest first.
func ForgetRequests(tx *Tx) {
	if tx.ResourceRequests.Len() < MaxResourceRequests {
		return
	}
	var over []*ResourceRequest
	for r := range tx.ResourceRequests.All() {
		if r.IsOver() {
			over = append(over, r)
		}
	}
	slices.SortFunc(over, func(a, b *ResourceRequest) int { return a.At.Compare(b.At) })
	for _, r := range over[:min(len(over), MaxResourceRequests/10)] {
		tx.ResourceRequests.Delete(r.Token)
	}
}
