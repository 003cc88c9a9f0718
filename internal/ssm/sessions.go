package ssm

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/wire/call"
)

// ResumeSession lets a client that has lost its connection into its session again. Session Manager's plugin goes on with the web socket's
// address that it knows.
func (s *Service) ResumeSession(ctx context.Context, in *ssm.ResumeSessionInput) (*ssm.ResumeSessionOutput, error) {
	token, err := s.opts.Sessions.Resume(*in.SessionId)
	if err != nil {
		return nil, &types.DoesNotExistException{Message: account.Message("Session %s does not exist.", *in.SessionId)}
	}
	url := "ws" + strings.TrimPrefix(call.From(ctx).Endpoint, "http") + "/v1/data-channel/" + *in.SessionId + "?role=publish_subscribe"
	return &ssm.ResumeSessionOutput{SessionId: in.SessionId, StreamUrl: aws.String(url), TokenValue: &token}, nil
}

// TerminateSession ends a session. One that is over already is no error.
func (s *Service) TerminateSession(_ context.Context, in *ssm.TerminateSessionInput) (*ssm.TerminateSessionOutput, error) {
	s.opts.Sessions.Terminate(*in.SessionId)
	return &ssm.TerminateSessionOutput{SessionId: in.SessionId}, nil
}
