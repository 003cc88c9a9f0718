// Package sts is the part of AWS STS that clients ask before all else: who am I?
package sts

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// Service is AWS STS for one account.
type Service struct {
	account string
	caller  func(context.Context) (arn string)
}

// New returns the service. caller tells whose call a context belongs to; an empty ARN is the root's.
func New(account string, caller func(context.Context) string) *Service {
	return &Service{account, caller}
}

// GetCallerIdentity says who the caller is.
func (s *Service) GetCallerIdentity(ctx context.Context, _ *sts.GetCallerIdentityInput) (*sts.GetCallerIdentityOutput, error) {
	arn := s.caller(ctx)
	if arn == "" {
		arn = "arn:aws:iam::" + s.account + ":root"
	}
	return &sts.GetCallerIdentityOutput{Account: &s.account, Arn: &arn, UserId: aws.String(s.account)}, nil
}
