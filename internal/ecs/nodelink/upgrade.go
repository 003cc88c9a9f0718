package nodelink

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// admit checks who wants to open a web socket and returns the row of its container instance. It returns nil if it
// refused the request, which it has then answered.
func (l *Link) admit(w http.ResponseWriter, r *http.Request, cluster, instance string) (_ *state.ContainerInstance, who call.Identity) {
	who, err := l.verify(r, r.Header, nil, instance)
	if err != nil {
		refuse(w, http.StatusForbidden, "AccessDeniedException", err.Error())
		return nil, who
	}
	row := l.store.View().ContainerInstances.Get(instance)
	switch {
	case row == nil:
		refuse(w, http.StatusBadRequest, "InvalidInstanceException", "There is no container instance "+instance+".")
	case !isRegistered(row):
		// Amazon's agent takes this as the end of its node, and tries again only after an hour.
		refuse(w, http.StatusBadRequest, "InactiveInstanceException", "The container instance "+instance+" was deregistered.")
	case !isCluster(cluster, row.ClusterArn):
		refuse(w, http.StatusBadRequest, "InvalidClusterException",
			"The container instance "+instance+" is not in the cluster "+cluster+".")
	case l.isTaken(instance, processOf(r)):
		refuse(w, http.StatusBadRequest, "InstanceInUseException", "Another agent is connected as the container instance "+instance+
			". Was its data directory copied? Start this agent with an empty one.")
	default:
		if l.opts.Known != nil {
			l.opts.Known(r.Context())
		}
		return row, who
	}
	return nil, who
}

// Admit checks who wants to open another web socket for a container instance, as for the protocol's own. It returns nil if it refused the
// request, which it has then answered.
func (l *Link) Admit(w http.ResponseWriter, r *http.Request) *state.ContainerInstance {
	q := r.URL.Query()
	row, _ := l.admit(w, r, q.Get("clusterArn"), q.Get("containerInstanceArn"))
	return row
}

// Refuse answers a node that wants to open a web socket with an error.
func Refuse(w http.ResponseWriter, code, message string) {
	refuse(w, http.StatusBadRequest, code, message)
}

// isTaken reports whether another agent process is connected as this node. One whose machine has just died counts for as long as its
// silence isn't noticed.
func (l *Link) isTaken(instance, process string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isTakenLocked(instance, process)
}

func (l *Link) isTakenLocked(instance, process string) bool {
	s := l.sockets[address{kindACS, instance}]
	return s != nil && process != "" && s.process != "" && s.process != process
}

// verify checks a signature over the web socket's address, the headers and the body, and that the signer may speak for the
// container instance. A task never may, and a node only for its own.
func (l *Link) verify(r *http.Request, h http.Header, body []byte, instance string) (who call.Identity, err error) {
	if l.opts.Verify == nil {
		return who, nil
	}
	who, err = l.opts.Verify(r.Context(), r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Host, h, body)
	if err != nil {
		return who, err
	}
	if !who.Node && !who.IsOwner() || who.Node && who.Instance != instance {
		return who, errors.New(account.NotAuthorized(who.Principal, "ecs:Poll", instance, ""))
	}
	return who, nil
}

// isRegistered reports whether the node is still registered. A draining node is.
func isRegistered(row *state.ContainerInstance) bool {
	return row != nil && aws.ToString(row.Status) != "INACTIVE"
}

// isCluster reports whether an agent means the cluster with this ARN. Agents send what they were configured with: an
// ARN, a name or nothing.
func isCluster(cluster, arn string) bool {
	return cluster == "" || cluster == arn || strings.HasSuffix(arn, ":cluster/"+cluster)
}

// refusal is the form in which Amazon's agent reads why an upgrade was refused.
type refusal struct {
	Type    string `json:"type"`
	Message struct {
		Message string `json:"message"`
	} `json:"message"`
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	f := refusal{Type: code}
	f.Message.Message = message
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(f) //nolint:errcheck // the node is gone
}
