package resources

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// accessKey has the properties of AWS::IAM::AccessKey. Its physical ID is the key's. The secret is told to nobody but the stack that creates
// the key, so the type has no identifier: who imported a key, or made one by Cloud Control, could do nothing with it.
type accessKey struct {
	UserName *string `cfn:"required,create"`
	Serial   *int32  `cfn:"create,write"` // another one means another key
	Status   types.StatusType
}

var _ = add(&kind[*accessKey]{
	name:       "AWS::IAM::AccessKey",
	live:       liveAccessKey,
	attributes: []string{"SecretAccessKey"},
	check: func(k *accessKey) (faults []string) {
		if k.Status != "" && k.Status != types.StatusTypeActive && k.Status != types.StatusTypeInactive {
			faults = append(faults, "#/Status: "+string(k.Status)+" is not a valid enum value")
		}
		return faults
	},
	create: func(ctx context.Context, s Step, k *accessKey) (string, error) {
		again := call.From(ctx)
		again.Token = s.Token
		out, err := call.Do[iam.CreateAccessKeyOutput](call.With(ctx, again), s.Services, &iam.CreateAccessKeyInput{UserName: k.UserName})
		if err != nil {
			return "", err
		}
		id := *out.AccessKey.AccessKeyId
		if s.Keep != nil {
			s.Keep("SecretAccessKey", *out.AccessKey.SecretAccessKey)
		}
		if err := setAccessKey(ctx, s, id, &accessKey{}, k); err != nil {
			return "", undo(ctx, s, id, k, deleteAccessKey, err)
		}
		return id, nil
	},
	update: setAccessKey,
	delete: deleteAccessKey,
	read: func(ctx context.Context, s Step, id string, k *accessKey) (Made, error) {
		_, err := liveAccessKey(ctx, s, id, k)
		return Made{}, err
	},
})

// setAccessKey activates a key or deactivates it. A key is active unless the template says otherwise.
func setAccessKey(ctx context.Context, s Step, id string, before, after *accessKey) error {
	if before.Status == after.Status {
		return nil
	}
	in := &iam.UpdateAccessKeyInput{UserName: after.UserName, AccessKeyId: &id, Status: after.Status}
	if in.Status == "" {
		in.Status = types.StatusTypeActive
	}
	return did[iam.UpdateAccessKeyOutput](ctx, s, in)
}

func deleteAccessKey(ctx context.Context, s Step, id string, k *accessKey) error {
	return did[iam.DeleteAccessKeyOutput](ctx, s, &iam.DeleteAccessKeyInput{UserName: k.UserName, AccessKeyId: &id})
}

func liveAccessKey(ctx context.Context, s Step, id string, k *accessKey) (*accessKey, error) {
	out, err := call.Do[iam.ListAccessKeysOutput](ctx, s.Services, &iam.ListAccessKeysInput{UserName: k.UserName})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(out.AccessKeyMetadata, func(m types.AccessKeyMetadata) bool { return *m.AccessKeyId == id })
	if i < 0 {
		return nil, errMissing
	}
	return &accessKey{UserName: out.AccessKeyMetadata[i].UserName, Status: out.AccessKeyMetadata[i].Status}, nil
}
