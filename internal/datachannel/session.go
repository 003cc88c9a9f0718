package datachannel

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Opening is a client's first message, the only one that is text: it shows the session's token.
type Opening struct {
	MessageSchemaVersion string
	RequestId            string //nolint:revive // AWS's spelling, as below
	TokenValue           string
	ClientId             string //nolint:revive // it stays the same when a client connects again
	ClientVersion        string
}

// Size is a terminal's.
type Size struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// Request is the payload of a node's HandshakeRequest.
type Request struct {
	AgentVersion           string
	RequestedClientActions []Action
}

// Action is what the client must do, here: be a terminal.
type Action struct {
	ActionType       string
	ActionParameters ActionParameters
}

// ActionParameters say which kind of session it is.
type ActionParameters struct {
	SessionType string
	Properties  *struct{}
}

// terminalSession is the type of ECS's sessions. With others a client forwards ports.
const terminalSession = "InteractiveCommands"

// NewRequest returns the request of a session with a terminal, encoded. AgentVersion is that of an agent of Systems Manager: clients ask old
// ones for less.
func NewRequest() []byte {
	b, _ := json.Marshal(Request{ // strings can't fail
		AgentVersion:           "3.1.1732.0",
		RequestedClientActions: []Action{{ActionType: "SessionType", ActionParameters: ActionParameters{SessionType: terminalSession}}},
	})
	return b
}

// Response is the payload of a client's HandshakeResponse.
type Response struct {
	ClientVersion          string
	ProcessedClientActions []Processed
	Errors                 []string
}

// Processed says what became of an action.
type Processed struct {
	ActionType   string
	ActionStatus ActionStatus
	ActionResult json.RawMessage
	Error        string
}

// ActionStatus is Done or Failed, or Unsupported.
type ActionStatus int

// What became of an action.
const (
	Done        ActionStatus = 1
	Failed      ActionStatus = 2
	Unsupported ActionStatus = 3
)

// Respond returns the response to a request, encoded.
func Respond(request []byte, clientVersion string) ([]byte, error) {
	var r Request
	if err := json.Unmarshal(request, &r); err != nil {
		return nil, fmt.Errorf("datachannel: the handshake's request: %w", err)
	}
	out := Response{ClientVersion: clientVersion}
	for _, a := range r.RequestedClientActions {
		p := Processed{ActionType: a.ActionType, ActionStatus: Done}
		if a.ActionType != "SessionType" || a.ActionParameters.SessionType != terminalSession {
			p.ActionStatus = Unsupported
			p.Error = "this client is a terminal, and no more"
		}
		out.ProcessedClientActions = append(out.ProcessedClientActions, p)
	}
	return json.Marshal(out)
}

// CheckResponse says why a client can't be the session's terminal, if it can't.
func CheckResponse(payload []byte) error {
	var r Response
	if err := json.Unmarshal(payload, &r); err != nil {
		return fmt.Errorf("datachannel: the handshake's response: %w", err)
	}
	for _, p := range r.ProcessedClientActions {
		if p.ActionType == "SessionType" && p.ActionStatus != Done {
			return fmt.Errorf("datachannel: the client can't be a terminal: %s", p.Error)
		}
	}
	return nil
}

// Complete returns the payload that ends a handshake of some length.
func Complete(took time.Duration) []byte {
	b, _ := json.Marshal(struct { // numbers and strings can't fail
		HandshakeTimeToComplete time.Duration
		CustomerMessage         string
	}{took, ""})
	return b
}

// End is the payload of Closed.
type End struct {
	MessageId     string //nolint:revive // AWS's spelling, as below
	CreatedDate   string
	DestinationId string //nolint:revive // see above
	SessionId     string //nolint:revive // see above
	MessageType   Kind
	SchemaVersion int
	Output        string // why the session ended, if not because the command did
	// ExitCode is the command's. It is Pintle's own: AWS's clients never know it.
	ExitCode *int `json:",omitempty"`
}

// Close returns the message that ends a session.
func Close(session string, exitCode *int, why string, now time.Time) []byte {
	payload, _ := json.Marshal(End{ // strings and numbers can't fail
		MessageId:     uuid.NewString(),
		CreatedDate:   now.UTC().Format("2006-01-02T15:04:05.000Z"),
		SessionId:     session,
		MessageType:   Closed,
		SchemaVersion: 1,
		Output:        why,
		ExitCode:      exitCode,
	})
	return Message{Kind: Closed, Created: now, Flags: first | last, ID: uuid.New(), Payload: payload}.Encode()
}
