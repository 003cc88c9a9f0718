package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// Stacks is what cfn-init and cfn-signal ask of CloudFormation.
type Stacks interface {
	// Metadata returns the metadata of a stack's resource, as JSON.
	Metadata(ctx context.Context, stack, resource string) (string, error)
	// Signal sends a signal to a stack's resource. Two with the same id are one.
	Signal(ctx context.Context, stack, resource, id string, status types.ResourceSignalStatus) error
}

// Direct asks CloudFormation itself.
type Direct struct{ Client *cloudformation.Client }

// Metadata implements Stacks.
func (d Direct) Metadata(ctx context.Context, stack, resource string) (string, error) {
	in := &cloudformation.DescribeStackResourceInput{StackName: &stack, LogicalResourceId: &resource}
	out, err := d.Client.DescribeStackResource(ctx, in)
	if err != nil {
		return "", err
	}
	return aws.ToString(out.StackResourceDetail.Metadata), nil
}

// Signal implements Stacks.
func (d Direct) Signal(ctx context.Context, stack, resource, id string, status types.ResourceSignalStatus) error {
	_, err := d.Client.SignalResource(ctx, &cloudformation.SignalResourceInput{
		StackName:         &stack,
		LogicalResourceId: &resource,
		UniqueId:          &id,
		Status:            status,
	})
	return err
}

// Environment variables of user data.
const (
	// SocketVariable has the path of the relay's socket.
	SocketVariable = "PINTLE_STACK_SOCKET"
	// InstanceVariable has the instance's id.
	InstanceVariable = "PINTLE_INSTANCE_ID"
)

// Relay asks CloudFormation for user data, which has no credentials: about the instance's own stack alone, and with its own id in signals. So
// on AWS does CloudFormation, to which an instance proves what it is.
type Relay struct {
	Stacks   Stacks
	Stack    string // the ARN of the instance's stack, or ""
	Instance string
}

// relayed is a request to the relay, and its answer.
type relayed struct {
	Stack    string                     `json:"stack"`
	Resource string                     `json:"resource"`
	Status   types.ResourceSignalStatus `json:"status,omitempty"` // of a signal
	Metadata string                     `json:"metadata,omitempty"`
	Error    string                     `json:"error,omitempty"`
}

// maxRelayed is the most bytes of a request or an answer. A template can have a megabyte.
const maxRelayed = 2 << 20

// Serve serves on a socket that this user alone can reach, until stop is called.
func (r Relay) Serve() (socket string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "pintle-stack-") // a socket's path can't be long, and that of the instance's directory may be
	if err != nil {
		return "", nil, err
	}
	socket = filepath.Join(dir, "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	server := &http.Server{Handler: r, ReadTimeout: time.Minute, WriteTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(listener) //nolint:errcheck // it ends with Close
	}()
	return socket, func() {
		server.Close() //nolint:errcheck // it's over either way
		<-done
		os.RemoveAll(dir) //nolint:errcheck // in the system's directory for such files
	}, nil
}

// ServeHTTP implements http.Handler.
func (r Relay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var q relayed
	if err := json.NewDecoder(io.LimitReader(request.Body, maxRelayed)).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var err error
	switch {
	case !r.isOwn(q.Stack):
		err = fmt.Errorf("instance %s is not of the stack %s", r.Instance, q.Stack)
	case q.Status != "":
		err = r.Stacks.Signal(request.Context(), r.Stack, q.Resource, r.Instance, q.Status)
	default:
		q.Metadata, err = r.Stacks.Metadata(request.Context(), r.Stack, q.Resource)
	}
	if err != nil {
		q.Error = err.Error()
	}
	json.NewEncoder(w).Encode(q) //nolint:errcheck // whoever asked has gone
}

// isOwn reports whether a name or an ARN is that of the instance's stack. The ARN ends in the name and what makes it unique.
func (r Relay) isOwn(stack string) bool {
	parts := strings.Split(r.Stack, "/")
	return stack != "" && (stack == r.Stack || len(parts) == 3 && stack == parts[1])
}

// At asks the relay on a socket.
type At string

// Metadata implements Stacks.
func (a At) Metadata(ctx context.Context, stack, resource string) (string, error) {
	got, err := a.ask(ctx, relayed{Stack: stack, Resource: resource})
	return got.Metadata, err
}

// Signal implements Stacks. The relay knows the instance's id.
func (a At) Signal(ctx context.Context, stack, resource, _ string, status types.ResourceSignalStatus) error {
	_, err := a.ask(ctx, relayed{Stack: stack, Resource: resource, Status: status})
	return err
}

func (a At) ask(ctx context.Context, q relayed) (relayed, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return relayed{}, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", string(a))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: time.Minute}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent/", bytes.NewReader(body))
	if err != nil {
		return relayed{}, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return relayed{}, fmt.Errorf("the agent does not answer: %w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // it's read
	var got relayed
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxRelayed)).Decode(&got); err != nil {
		return relayed{}, fmt.Errorf("the agent answers %s: %w", answer.Status, err)
	}
	if got.Error != "" {
		return relayed{}, errors.New(got.Error)
	}
	return got, nil
}
