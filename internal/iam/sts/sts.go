// Package sts implements the operation of AWS STS that clients call first, GetCallerIdentity. It also issues tasks' temporary
// credentials.
package sts

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/pintle/pintle/internal/account"
)

// Service is AWS STS for one account.
type Service struct {
	account account.Account
	caller  func(context.Context) (arn string)
}

// New returns the service. caller returns the ARN of the caller in a context. An empty ARN means the account's root.
func New(a account.Account, caller func(context.Context) string) *Service {
	return &Service{a, caller}
}

// GetCallerIdentity returns the caller's account and ARN.
func (s *Service) GetCallerIdentity(ctx context.Context, _ *sts.GetCallerIdentityInput) (*sts.GetCallerIdentityOutput, error) {
	arn := s.caller(ctx)
	if arn == "" {
		arn = s.account.Root()
	}
	return &sts.GetCallerIdentityOutput{Account: &s.account.ID, Arn: &arn, UserId: aws.String(s.account.ID)}, nil
}
