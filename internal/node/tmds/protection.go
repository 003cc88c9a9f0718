package tmds

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/acs"
)

// This file is the task scale-in protection endpoint:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-scale-in-protection-endpoint.html

// callTimeout is how long the control plane has to answer a call.
const callTimeout = 4 * time.Second

type protection struct {
	ProtectionEnabled bool
	ExpirationDate    *time.Time `json:",omitempty"`
	TaskArn           string
}

type failure struct {
	Arn    string
	Reason string
	Detail string `json:",omitempty"`
}

type protectionError struct {
	Arn     string
	Code    string
	Message string
}

type protectionAnswer struct {
	Protection *protection      `json:"protection,omitempty"`
	Failure    *failure         `json:"failure,omitempty"`
	Error      *protectionError `json:"error,omitempty"`
}

// protectionCall calls the control plane about a task, with the option as, which sets the credentials.
type protectionCall func(ctx context.Context, cluster, task string, as func(*ecs.Options)) ([]types.ProtectedTask, []types.Failure, error)

func (s *Server) getProtection(w http.ResponseWriter, r *http.Request) {
	s.protect(w, r, func(ctx context.Context, cluster, task string, as func(*ecs.Options)) ([]types.ProtectedTask, []types.Failure, error) {
		out, err := s.opts.ECS.GetTaskProtection(ctx, &ecs.GetTaskProtectionInput{Cluster: &cluster, Tasks: []string{task}}, as)
		if err != nil {
			return nil, nil, err
		}
		return out.ProtectedTasks, out.Failures, nil
	})
}

func (s *Server) putProtection(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ProtectionEnabled *bool
		ExpiresInMinutes  *int32
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	d.DisallowUnknownFields()
	err := d.Decode(&in)
	s.protect(w, r, func(ctx context.Context, cluster, task string, as func(*ecs.Options)) ([]types.ProtectedTask, []types.Failure, error) {
		if err != nil {
			return nil, nil, invalid("the body must be JSON with ProtectionEnabled and, if need be, ExpiresInMinutes: " + err.Error())
		}
		if in.ProtectionEnabled == nil {
			return nil, nil, invalid("ProtectionEnabled must be given")
		}
		out, err := s.opts.ECS.UpdateTaskProtection(ctx, &ecs.UpdateTaskProtectionInput{
			Cluster:           &cluster,
			Tasks:             []string{task},
			ProtectionEnabled: *in.ProtectionEnabled,
			ExpiresInMinutes:  in.ExpiresInMinutes,
		}, as)
		if err != nil {
			return nil, nil, err
		}
		return out.ProtectedTasks, out.Failures, nil
	})
}

func invalid(message string) error {
	return &types.InvalidParameterException{Message: &message}
}

// protect makes a call about the container's task, as the task's role, and answers with the result.
func (s *Server) protect(w http.ResponseWriter, r *http.Request, call protectionCall) {
	c, ok := s.identify(w, r)
	if !ok {
		return
	}
	task := &c.record.Task
	if task.RoleCredentials == nil {
		write(w, http.StatusForbidden, protectionAnswer{
			Error: &protectionError{task.Arn, "AccessDeniedException", "the task has no role, with which it could ask for protection"},
		})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	tasks, failures, err := call(ctx, task.TaskClusterArn, task.Arn, withCredentials(task.RoleCredentials))
	switch {
	case err != nil:
		status, code, message := explain(err)
		write(w, status, protectionAnswer{Error: &protectionError{task.Arn, code, message}})
	case len(failures) > 0:
		f := failures[0]
		write(w, http.StatusOK, protectionAnswer{
			Failure: &failure{aws.ToString(f.Arn), aws.ToString(f.Reason), aws.ToString(f.Detail)},
		})
	case len(tasks) != 1:
		write(w, http.StatusInternalServerError, protectionAnswer{
			Error: &protectionError{task.Arn, "ServerException", "the control plane did not answer for this task"},
		})
	default:
		p := tasks[0]
		write(w, http.StatusOK, protectionAnswer{
			Protection: &protection{p.ProtectionEnabled, p.ExpirationDate, aws.ToString(p.TaskArn)},
		})
	}
}

// withCredentials makes a call with a role's credentials.
func withCredentials(c *acs.IAMRoleCredentials) func(*ecs.Options) {
	return func(o *ecs.Options) {
		o.Credentials = credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)
	}
}

// explain returns the HTTP status, AWS's error code and the message for an error.
func explain(err error) (status int, code, message string) {
	if errors.Is(err, context.DeadlineExceeded) {
		return http.StatusGatewayTimeout, "RequestCanceled", "the control plane did not answer in time"
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return http.StatusInternalServerError, "ServerException", err.Error()
	}
	status = http.StatusInternalServerError
	switch {
	case api.ErrorCode() == "AccessDeniedException":
		status = http.StatusForbidden
	case api.ErrorFault() == smithy.FaultClient:
		status = http.StatusBadRequest
	}
	return status, api.ErrorCode(), api.ErrorMessage()
}
