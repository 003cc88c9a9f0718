// Package sts is the part of AWS STS that clients ask before all else: who am I?
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

// New returns the service. caller tells whose call a context belongs to; an empty ARN is the root's.
func New(whose account.Account, caller func(context.Context) string) *Service {
	return &Service{whose, caller}
}

// GetCallerIdentity says who the caller is.
func (s *Service) GetCallerIdentity(ctx context.Context, _ *sts.GetCallerIdentityInput) (*sts.GetCallerIdentityOutput, error) {
	arn := s.caller(ctx)
	if arn == "" {
		arn = s.account.Root()
	}
	return &sts.GetCallerIdentityOutput{Account: &s.account.ID, Arn: &arn, UserId: aws.String(s.account.ID)}, nil
}
