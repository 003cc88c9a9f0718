// Package sts implements the operations of AWS STS that clients call first: GetCallerIdentity and AssumeRole. It also issues tasks' temporary
// credentials.
package sts

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/iam"
	"github.com/pintle/pintle/internal/wire/call"
)

// Options are the account, and what the service uses.
type Options struct {
	account.Account
	Issuer *Issuer
	Roles  *iam.Service // knows roles, and who may assume them
}

// Service is AWS STS for one account.
type Service struct{ opts Options }

// New returns the service.
func New(opts Options) *Service { return &Service{opts} }

func invalid(format string, args ...any) error {
	return account.Refuse("ValidationError", format, args...)
}

// GetCallerIdentity returns the caller's account, ARN and unique id.
func (s *Service) GetCallerIdentity(ctx context.Context, _ *sts.GetCallerIdentityInput) (*sts.GetCallerIdentityOutput, error) {
	c := call.From(ctx)
	arn := cmp.Or(c.Principal, s.opts.Root())
	id := cmp.Or(s.opts.Roles.UserID(c.Identity), s.opts.ID)
	if role := s.opts.Roles.RoleID(c.Role); role != "" {
		id = role + ":" + last(arn)
	}
	return &sts.GetCallerIdentityOutput{Account: &s.opts.ID, Arn: &arn, UserId: &id}, nil
}

// maxChained is how long a session lasts at most that another one made.
const maxChained = time.Hour

// AssumeRole makes credentials for a role. A role of IAM's is given to those whom its trust policy allows; one that is a name alone, as
// tasks may have, to everybody.
func (s *Service) AssumeRole(ctx context.Context, in *sts.AssumeRoleInput) (*sts.AssumeRoleOutput, error) {
	if err := checkAbsent(in); err != nil {
		return nil, err
	}
	if a, err := arn.Parse(*in.RoleArn); err != nil || a.Partition == "" || a.Service == "" || a.Resource == "" {
		return nil, invalid("%s is invalid", *in.RoleArn)
	}
	name, ok := s.opts.GlobalResourceOf("iam", "role/", *in.RoleArn)
	if !ok {
		return nil, account.RefuseWith(403, "AccessDenied", "%s", account.NotAuthorized(
			cmp.Or(call.From(ctx).Principal, s.opts.Root()), "sts:AssumeRole", *in.RoleArn, ""))
	}
	marks, err := s.marks(ctx, in)
	if err != nil {
		return nil, err
	}
	a := iam.Assumption{ExternalID: in.ExternalId, SessionName: *in.RoleSessionName, Marks: marks}
	role, err := s.opts.Roles.Assumable(ctx, *in.RoleArn, a)
	if err != nil {
		return nil, err
	}
	lasts := time.Duration(aws.ToInt32(cmp.Or(in.DurationSeconds, aws.Int32(3600)))) * time.Second
	switch {
	case role.MaxSession > 0 && lasts > role.MaxSession:
		return nil, invalid("The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
	case call.From(ctx).Role != "" && lasts > maxChained:
		return nil, invalid("The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining.")
	}
	session, size, err := s.pack(in, marks)
	if err != nil {
		return nil, err
	}
	c := s.opts.Issuer.Assume(Assumed{
		Role:    *in.RoleArn,
		RoleID:  role.ID,
		Name:    *in.RoleSessionName,
		Task:    call.From(ctx).Task,
		Lasts:   lasts,
		Session: session,
	})
	out := &sts.AssumeRoleOutput{
		PackedPolicySize: size,
		Credentials: &types.Credentials{
			AccessKeyId:     &c.AccessKeyID,
			SecretAccessKey: &c.SecretAccessKey,
			SessionToken:    &c.SessionToken,
			Expiration:      &c.Expires,
		},
		AssumedRoleUser: &types.AssumedRoleUser{
			Arn:           aws.String(s.opts.GlobalARN("sts", "assumed-role/"+last(name)+"/"+*in.RoleSessionName)),
			AssumedRoleId: aws.String(cmp.Or(role.ID, s.opts.ID) + ":" + *in.RoleSessionName),
		},
	}
	if marks.SourceIdentity != "" {
		out.SourceIdentity = &marks.SourceIdentity
	}
	return out, nil
}

// marks returns the tags and the source identity of the session that a call makes.
func (s *Service) marks(ctx context.Context, in *sts.AssumeRoleInput) (iam.Marks, error) {
	asked := iam.Marks{SourceIdentity: aws.ToString(in.SourceIdentity)}
	for _, t := range in.Tags {
		asked.Tags = append(asked.Tags, iam.SessionTag{Key: *t.Key, Value: *t.Value})
	}
	return s.opts.Roles.Marked(call.From(ctx).Identity, asked, in.TransitiveTagKeys)
}

// maxPacked is how many characters a session's policies may have, together with the managed ones' ARNs and with its tags.
const maxPacked = 2048

// pack returns a session as call.Identity has it, and how much of the room for it is taken, in percent; nil for one without policies and tags.
func (s *Service) pack(in *sts.AssumeRoleInput, marks iam.Marks) (session string, percent *int32, err error) {
	var arns []string
	for _, p := range in.PolicyArns {
		arns = append(arns, aws.ToString(p.Arn))
	}
	session, size, err := s.opts.Roles.PackSession(aws.ToString(in.Policy), arns, marks)
	if size == 0 || err != nil {
		return session, nil, err
	}
	taken := size * 100 / maxPacked
	switch {
	case size <= maxPacked:
		return session, aws.Int32(int32(max(1, taken))), nil
	case in.Policy == nil && len(arns) == 0:
		return "", nil, account.Refuse("PackedPolicyTooLarge", "Packed size of session tags consumes %d%% of allotted space.", taken)
	}
	return "", nil, account.Refuse("PackedPolicyTooLarge", "Packed policy consumes %d%% of allotted space, please use smaller policy.", taken)
}

// checkAbsent refuses what would limit or mark a session and isn't there yet: without it a session could do more than was asked for.
func checkAbsent(in *sts.AssumeRoleInput) error {
	var given []string
	for member, is := range map[string]bool{
		"ProvidedContexts": len(in.ProvidedContexts) > 0,
		"SerialNumber":     in.SerialNumber != nil,
		"TokenCode":        in.TokenCode != nil,
	} {
		if is {
			given = append(given, member)
		}
	}
	if len(given) == 0 {
		return nil
	}
	slices.Sort(given)
	return invalid("Pintle's AssumeRole doesn't take %s yet.", strings.Join(given, ", "))
}
