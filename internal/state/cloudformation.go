package state

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/store"
)

// StackTag is the key of the tag that says which stack has made something. Its value is the stack's ID.
const StackTag = "aws:cloudformation:stack-id"

// Stack is a stack of AWS CloudFormation. What it was made from is in Source alone, not in the embedded struct.
type Stack struct {
	types.Stack
	// Source is what the stack was last made from with success; nil if it never was.
	Source *StackSource `json:",omitempty"`
	// Target is what the stack is being made into, until that succeeded or was rolled back.
	Target    *StackSource `json:",omitempty"`
	OnFailure types.OnFailure
	// By is who began the operation. Whoever may do less than the account's owner gets no more done through a stack.
	By StackCaller
	// Token is the caller's for the operation that runs, and Since when that began.
	Token string `json:",omitempty"`
	Since time.Time
	// Tokens are those of the calls that last began something, by which they are known if they come again.
	Tokens []StackToken `json:",omitempty"`
	// Skip lists resources that a rollback leaves as they are.
	Skip []string `json:",omitempty"`
	// Retain lists resources that a deletion leaves alone.
	Retain []string `json:",omitempty"`
	// ForceDelete has a deletion leave alone what it fails to delete.
	ForceDelete bool `json:",omitempty"`
	// Imports are the names of the exports of other stacks that it uses.
	Imports []string `json:",omitempty"`
	// Policy is the stack policy; "" if there is none.
	Policy string `json:",omitempty"`
	// PolicyDuring is what the update that runs is held to in Policy's place, and PolicyNext what takes that place once it has succeeded.
	PolicyDuring string `json:",omitempty"`
	PolicyNext   string `json:",omitempty"`
	// Built is since when the operation that runs has built everything and only waits, for its alarms or for somebody who looks at it.
	Built time.Time `json:",omitzero"`
	// Operation is the ID of the operation that runs, or ran last. The rollback of an update is a part of that update. An operation that goes on
	// from one that has failed, and wasn't rolled back, has the first one's ID with a number behind it.
	Operation string `json:",omitempty"`
	// RetainExceptOnCreate is whether a rollback deletes what the operation has made, also if its policy is to retain it.
	RetainExceptOnCreate bool `json:",omitzero"`
	// Former is what a nested stack was made from before its parent's operation FormerOf updated it. The template's URL may lead to another
	// one by now. Both are kept until the update of the stack at the root is over.
	Former   *StackSource `json:",omitempty"`
	FormerOf string       `json:",omitempty"`
}

// KeepsFailures reports whether the stack stays as a failure of its operation leaves it, in place of being rolled back. OnFailure concerns its
// creation alone.
func (s *Stack) KeepsFailures() bool {
	return aws.ToBool(s.DisableRollback) || s.Source == nil && s.OnFailure == types.OnFailureDoNothing
}

// HasFailed reports whether an operation has failed and left the stack as it was then. See
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stack-failure-options.html
func (s *Stack) HasFailed() bool {
	return s.StackStatus == types.StackStatusCreateFailed || s.StackStatus == types.StackStatusUpdateFailed
}

// Latest returns what the stack was last made from, also without success if it stays as a failure has left it; nil if it's from nothing.
func (s *Stack) Latest() *StackSource {
	if s.Target != nil && (s.Source == nil || s.HasFailed()) {
		return s.Target
	}
	return s.Source
}

// BeginOperation gives the stack a new operation's ID. If it goes on from the last one, a rollback takes back what both did.
func (s *Stack) BeginOperation(goesOn bool) {
	if !goesOn {
		s.Operation = NewUUID()
		return
	}
	first, number, _ := strings.Cut(s.Operation, attempt)
	n, _ := strconv.Atoi(number)                                         // the first has none
	s.Operation = cmp.Or(first, NewUUID()) + attempt + strconv.Itoa(n+1) // an earlier version's may have no ID
}

// attempt is between an operation's ID and the number of one that goes on from it.
const attempt = "."

// HasAttempted reports whether an operation is the one that runs, or one before it that wasn't rolled back.
func (s *Stack) HasAttempted(operation string) bool {
	wanted, _, _ := strings.Cut(operation, attempt)
	first, _, _ := strings.Cut(s.Operation, attempt)
	return wanted != "" && wanted == first
}

// TriesAgain reports whether the operation goes on from one that has failed.
func (s *Stack) TriesAgain() bool { return strings.Contains(s.Operation, attempt) }

// StackToken is a caller's token for a call, and the operation that it called.
type StackToken struct{ Token, Operation string }

// maxStackTokens is how many tokens a stack remembers.
const maxStackTokens = 32

// Tokened notes the token of the call that begins something; "" if it has none.
func (s *Stack) Tokened(operation, token string) {
	if s.Token = token; token == "" {
		return
	}
	kept := s.Tokens[max(0, len(s.Tokens)-maxStackTokens+1):]
	s.Tokens = append(slices.Clip(kept), StackToken{token, operation})
}

// StackCaller is somebody who begins operations on stacks: the account's owner, if it has neither a task nor a role.
type StackCaller struct {
	Principal string `json:",omitempty"`
	Task      string `json:",omitempty"`
	Role      string `json:",omitempty"`
	Session   string `json:",omitempty"` // what the session has besides its role
}

// StackSource is what a stack is made from.
type StackSource struct {
	Template         string
	Expanded         string             `json:",omitempty"` // the template with the parts that it includes, if it includes some
	Description      string             `json:",omitempty"`
	Values           []byte             `json:",omitempty"` // the parameters' values as JSON, encrypted
	Parameters       []types.Parameter  `json:",omitempty"` // as they are shown
	Tags             []types.Tag        `json:",omitempty"`
	NotificationARNs []string           `json:",omitempty"`
	Capabilities     []types.Capability `json:",omitempty"`
	// Imports are the physical IDs of the resources that are to be imported, by their logical IDs.
	Imports map[string]string `json:",omitempty"`
	// IncludesNested is whether the stacks in the stack are made and updated as their change sets say, which Nested has by logical IDs. One
	// without is left alone.
	IncludesNested bool                       `json:",omitzero"`
	Nested         map[string]NestedChangeSet `json:",omitempty"`
}

// NestedChangeSet is the change set of a stack in a stack.
type NestedChangeSet struct {
	ID    string // its ARN
	Stack string // the stack's ID
	Token string // of the resource that the stack will be; "" if it's one already
}

// StackResource is a resource that a stack made, or is making. While one takes another's place, both stand under one name.
type StackResource struct {
	Stack string // its ID
	Name  string // the logical ID
	// Token is new for each resource that is made. A call that is made again after a crash has the token of the first.
	Token       string
	Type        string
	PhysicalID  string `json:",omitempty"`
	Status      types.ResourceStatus
	Reason      string `json:",omitempty"`
	At          time.Time
	Properties  []byte `json:",omitempty"` // as they are, as JSON, encrypted
	Next        []byte `json:",omitempty"` // as they will be once the change in progress is complete, or were to be if it failed
	Ref         string `json:",omitempty"`
	Attributes  map[string]any
	Secrets     []byte   `json:",omitempty"` // those of its attributes that must not be shown, as JSON, encrypted
	Needs       []string `json:",omitempty"` // the names of the resources that must stay while this one is there
	Description string   `json:",omitempty"`
	Metadata    string   `json:",omitempty"` // JSON
	// Superseded is whether another resource has taken the place of this one, which is to be deleted.
	Superseded bool `json:",omitzero"`
	// Failed is whether the resource failed in the part of the stack's operation that runs.
	Failed              bool   `json:",omitzero"`
	DeletionPolicy      string `json:",omitempty"`
	UpdateReplacePolicy string `json:",omitempty"`
	// Signals are the statuses that were signalled, by the unique ID of who did.
	Signals map[string]types.ResourceSignalStatus `json:",omitempty"`
	// Heard are the signals that were sent to the URL of a wait condition's handle, in the order in which they came.
	Heard []WaitSignal `json:",omitempty"`
	// Operation is, of a nested stack, its parent's in which it was made or updated; "" once a rollback has taken that back.
	Operation string `json:",omitempty"`
	// MadeBy is the stack's operation that began to make the resource; "" if it was imported.
	MadeBy string `json:",omitempty"`
	// Rolling is the rolling update of an Auto Scaling group that is under way, or failed.
	Rolling *RollingUpdate `json:",omitempty"`
}

// WaitSignal is a signal for a wait condition, as it's sent to the URL of the condition's handle.
type WaitSignal struct {
	Status   types.ResourceSignalStatus
	UniqueID string `json:"UniqueId"`
	Reason   string `json:",omitempty"`
	Data     string `json:",omitempty"`
}

// RollingUpdate is how far the replacement of a group's instances has come.
type RollingUpdate struct {
	Of        int       // instances that it began with
	Since     time.Time // when the last batch was terminated; zero before the first
	Min       int32     // the group's sizes before they were raised for it
	Desired   int32
	Raised    bool     `json:",omitzero"`
	Suspended []string `json:",omitempty"` // processes that it suspended
}

// Key returns the stack's ID, the name and the token.
func (r *StackResource) Key() string { return r.Stack + " " + r.Name + " " + r.Token }

// CustomRequest is what the function of a custom resource was asked last, and its answer.
type CustomRequest struct {
	Resource string // the key of the resource's row
	ID       string
	Digest   string // of what was asked
	At       time.Time
	Answer   []byte `json:",omitempty"` // as JSON, encrypted
}

// CustomRequestWith returns the request with an id, or nil.
func (v *View) CustomRequestWith(id string) *CustomRequest {
	for r := range v.CustomRequests.By(customRequestsByID, id) {
		return r
	}
	return nil
}

// StackEvent is an event of a stack.
type StackEvent struct {
	types.StackEvent
	Number int64 // from 1
}

// Key returns the stack's ID and what sorts a stack's events from new to old.
func (e *StackEvent) Key() string {
	return fmt.Sprintf("%s %019d", aws.ToString(e.StackId), math.MaxInt64-e.Number)
}

// ChangeSet is a change set of a stack.
type ChangeSet struct {
	ID              string // its ARN
	Name            string
	Stack           string // its ID
	Token           string // ClientToken of the call that made it
	Type            types.ChangeSetType
	Description     string `json:",omitempty"`
	Created         time.Time
	Status          types.ChangeSetStatus
	ExecutionStatus types.ExecutionStatus
	Reason          string `json:",omitempty"`
	Source          StackSource
	Changes         []types.Change       `json:",omitempty"`
	OnFailure       types.OnStackFailure `json:",omitempty"`
	RoleARN         string               `json:",omitempty"`
	// Rollback is what watches over the operation; nil if nothing does.
	Rollback *types.RollbackConfiguration `json:",omitempty"`
	// IncludesNested is whether it has change sets of the stacks in the stack, too.
	IncludesNested bool `json:",omitzero"`
	// ImportsExisting is whether resources that are there already are imported.
	ImportsExisting bool `json:",omitzero"`
	// Parent and Root are the IDs of the change sets that this one belongs to, if its stack is in others.
	Parent string `json:",omitempty"`
	Root   string `json:",omitempty"`
}

// Executed reports whether the change set's execution has begun.
func (c *ChangeSet) Executed() bool {
	switch c.ExecutionStatus {
	case types.ExecutionStatusExecuteInProgress, types.ExecutionStatusExecuteComplete, types.ExecutionStatusExecuteFailed:
		return true
	}
	return false
}

// ExecutionEnded returns the change set as it is once its stack has a status.
func (c *ChangeSet) ExecutionEnded(status types.StackStatus) *ChangeSet {
	next := *c
	switch status {
	case types.StackStatusCreateInProgress, types.StackStatusUpdateInProgress, types.StackStatusImportInProgress:
	case types.StackStatusCreateComplete, types.StackStatusUpdateComplete, types.StackStatusUpdateCompleteCleanupInProgress,
		types.StackStatusImportComplete:
		next.ExecutionStatus = types.ExecutionStatusExecuteComplete
	default:
		next.ExecutionStatus = types.ExecutionStatusExecuteFailed
	}
	return &next
}

// ResourcesOf returns the resources of a stack by their names.
func (v *View) ResourcesOf(stack string) iter.Seq[*StackResource] {
	return under(v.StackResources, stack, func(r *StackResource) string { return r.Stack })
}

// EventsOf returns a stack's events, from new to old.
func (v *View) EventsOf(stack string) iter.Seq[*StackEvent] {
	return under(v.StackEvents, stack, func(e *StackEvent) string { return *e.StackId })
}

// under returns the rows that belong to a stack. Their keys begin with its ID and a blank.
func under[R any](t Table[R], stack string, of func(R) string) iter.Seq[R] {
	return func(yield func(R) bool) {
		for row := range t.Behind(stack + " ") {
			if of(row) != stack || !yield(row) {
				return
			}
		}
	}
}

func (v *View) hasEncryptedStacks() bool {
	for s := range v.Stacks.All() {
		if s.Source != nil || s.Target != nil {
			return true
		}
	}
	for c := range v.ChangeSets.All() {
		if len(c.Source.Values) > 0 {
			return true
		}
	}
	for range v.ResourceRequests.By(OpenRequests, "open") {
		return true
	}
	return false
}

// StackNamed returns the stack with a name that isn't deleted, or nil.
func (v *View) StackNamed(name string) *Stack {
	for s := range v.Stacks.By(StacksByName, name) {
		return s
	}
	return nil
}

// Gone reports whether the stack was deleted.
func (s *Stack) Gone() bool { return s.StackStatus == types.StackStatusDeleteComplete }

// Busy reports whether an operation is under way.
func (s *Stack) Busy() bool {
	return strings.HasSuffix(string(s.StackStatus), "_IN_PROGRESS") && !s.InReview()
}

// InReview reports whether there is no more of the stack than change sets that would create it.
func (s *Stack) InReview() bool { return s.StackStatus == types.StackStatusReviewInProgress }

// keepStacks is how long deleted stacks are shown.
const keepStacks = 90 * 24 * time.Hour

var (
	// StacksByName finds the stack that has a name, of those that aren't deleted.
	StacksByName = Index[*Stack]{Name: "name", Value: func(s *Stack) string {
		if s.Gone() {
			return ""
		}
		return *s.StackName
	}}
	// BusyStacks finds the stacks with an operation under way, by "busy".
	BusyStacks = Index[*Stack]{Name: "busy", Value: func(s *Stack) string {
		if s.Busy() {
			return "busy"
		}
		return ""
	}}
	// ChangeSetsByStack finds a stack's change sets by its ID, but for the one that was executed.
	ChangeSetsByStack = Index[*ChangeSet]{Name: "stack", Value: func(c *ChangeSet) string {
		if c.Executed() {
			return ""
		}
		return c.Stack
	}}

	stacks = &store.Definition[*Stack]{
		Name:     "stacks",
		Key:      func(s *Stack) string { return *s.StackId },
		Indexes:  []Index[*Stack]{StacksByName, BusyStacks},
		Lifetime: store.KeepFor(keepStacks, func(s *Stack) *time.Time { return s.DeletionTime }),
	}
	stackResources = &store.Definition[*StackResource]{
		Name:     "stack_resources",
		Key:      (*StackResource).Key,
		Lifetime: withStack(func(r *StackResource) (key, stack string) { return r.Key(), r.Stack }),
	}
	stackEvents = &store.Definition[*StackEvent]{
		Name:     "stack_events",
		Key:      (*StackEvent).Key,
		Lifetime: withStack(func(e *StackEvent) (key, stack string) { return e.Key(), *e.StackId }),
	}
	changeSets = &store.Definition[*ChangeSet]{
		Name:     "change_sets",
		Key:      func(c *ChangeSet) string { return c.ID },
		Indexes:  []Index[*ChangeSet]{ChangeSetsByStack},
		Lifetime: withStack(func(c *ChangeSet) (key, stack string) { return c.ID, c.Stack }),
	}
)

// withStack keeps rows as long as their stack.
func withStack[R any](of func(R) (key, stack string)) store.Lifetime[R] {
	return func(t Table[R], _ time.Time) (expired []string) {
		all := stacks.In(t.View())
		for row := range t.All() {
			if key, stack := of(row); all.Get(stack) == nil {
				expired = append(expired, key)
			}
		}
		return expired
	}
}

var (
	customRequestsByID = Index[*CustomRequest]{Name: "id", Value: func(r *CustomRequest) string { return r.ID }}
	customRequests     = &store.Definition[*CustomRequest]{
		Name:    "customrequests",
		Key:     func(r *CustomRequest) string { return r.Resource },
		Indexes: []Index[*CustomRequest]{customRequestsByID},
	}
)

// stackTables are the tables of CloudFormation and Cloud Control.
type stackTables struct {
	ChangeSets       Table[*ChangeSet]
	CustomRequests   Table[*CustomRequest]
	DriftDetections  Table[*DriftDetection]
	ResourceDrifts   Table[*ResourceDrift]
	ResourceRequests Table[*ResourceRequest]
	StackEvents      Table[*StackEvent]
	StackResources   Table[*StackResource]
	Stacks           Table[*Stack]
}

// newStackTables binds the tables to a view.
func newStackTables(v *store.View) stackTables {
	return stackTables{
		ChangeSets:       changeSets.In(v),
		CustomRequests:   customRequests.In(v),
		DriftDetections:  driftDetections.In(v),
		ResourceDrifts:   resourceDrifts.In(v),
		ResourceRequests: resourceRequests.In(v),
		StackEvents:      stackEvents.In(v),
		StackResources:   stackResources.In(v),
		Stacks:           stacks.In(v),
	}
}
