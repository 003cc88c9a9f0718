package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// keyPair has the properties of AWS::EC2::KeyPair. Its physical ID is the name. Without PublicKeyMaterial a pair is made, whose private half
// is kept in the parameter /ec2/keypair/ID.
type keyPair struct {
	KeyName           *string         `cfn:"required,create"`
	KeyFormat         types.KeyFormat `cfn:"create,write"`
	KeyType           types.KeyType   `cfn:"create"`
	PublicKeyMaterial *string         `cfn:"create,write"`
	Tags              []Tag
}

var _ = add(&kind[*keyPair]{
	name:       "AWS::EC2::KeyPair",
	live:       liveKey,
	identifier: []string{"KeyName"},
	attributes: []string{"KeyFingerprint", "KeyPairId"},
	id:         func(_ Step, k *keyPair) string { return aws.ToString(k.KeyName) },
	create: func(ctx context.Context, s Step, k *keyPair) (string, error) {
		return *k.KeyName, makeKey(ctx, s, k)
	},
	update: func(ctx context.Context, s Step, name string, before, after *keyPair) error {
		there, err := describeKey(ctx, s, name)
		if err != nil {
			return err
		}
		isKept, err := hasPrivateKey(ctx, s, *there.KeyPairId)
		if err != nil {
			return err
		}
		if after.PublicKeyMaterial == nil && before.KeyName == nil && !isKept { // somebody was killed before it could be kept
			if err := deleteKey(ctx, s, name, after); err != nil {
				return err
			}
			return makeKey(ctx, s, after)
		}
		return retagEC2(ctx, s, *there.KeyPairId, before.Tags, after.Tags)
	},
	delete: deleteKey,
	read: func(ctx context.Context, s Step, name string, _ *keyPair) (Made, error) {
		k, err := describeKey(ctx, s, name)
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"KeyFingerprint": *k.KeyFingerprint, "KeyPairId": *k.KeyPairId}}, nil
	},
})

// privateKey is the name of the parameter with a pair's private half.
func privateKey(id string) *string { return new("/ec2/keypair/" + id) }

// makeKey imports a key pair, or makes one and keeps its private half.
func makeKey(ctx context.Context, s Step, k *keyPair) error {
	tags, err := ec2Tags(s, types.ResourceTypeKeyPair, k.Tags)
	if err != nil {
		return err
	}
	if k.PublicKeyMaterial != nil {
		in := &ec2.ImportKeyPairInput{KeyName: k.KeyName, PublicKeyMaterial: []byte(*k.PublicKeyMaterial), TagSpecifications: tags}
		return did[ec2.ImportKeyPairOutput](ctx, s, in)
	}
	in := &ec2.CreateKeyPairInput{KeyName: k.KeyName, KeyFormat: k.KeyFormat, KeyType: k.KeyType, TagSpecifications: tags}
	out, err := call.Do[ec2.CreateKeyPairOutput](ctx, s.Services, in)
	if err != nil {
		return err
	}
	keep := &ssm.PutParameterInput{Name: privateKey(*out.KeyPairId), Value: out.KeyMaterial, Type: ssmtypes.ParameterTypeSecureString}
	if err := did[ssm.PutParameterOutput](ctx, s, keep); err != nil {
		return undo(ctx, s, *k.KeyName, k, deleteKey, err)
	}
	return nil
}

func describeKey(ctx context.Context, s Step, name string) (types.KeyPairInfo, error) {
	out, err := call.Do[ec2.DescribeKeyPairsOutput](ctx, s.Services, &ec2.DescribeKeyPairsInput{KeyNames: []string{name}})
	if err != nil {
		return types.KeyPairInfo{}, err
	}
	return out.KeyPairs[0], nil
}

// hasPrivateKey reports whether a pair's private half is kept.
func hasPrivateKey(ctx context.Context, s Step, id string) (bool, error) {
	err := did[ssm.GetParameterOutput](ctx, s, &ssm.GetParameterInput{Name: privateKey(id)})
	if isMissing(err) {
		return false, nil
	}
	return err == nil, err
}

// deleteKey deletes a pair, after the private half that nobody could find any more.
func deleteKey(ctx context.Context, s Step, name string, k *keyPair) error {
	there, err := describeKey(ctx, s, name)
	if err != nil {
		return err
	}
	if k.PublicKeyMaterial == nil {
		in := &ssm.DeleteParameterInput{Name: privateKey(*there.KeyPairId)}
		if err := did[ssm.DeleteParameterOutput](ctx, s, in); err != nil && !isMissing(err) {
			return err
		}
	}
	return did[ec2.DeleteKeyPairOutput](ctx, s, &ec2.DeleteKeyPairInput{KeyName: &name})
}

func liveKey(ctx context.Context, s Step, name string, _ *keyPair) (*keyPair, error) {
	k, err := describeKey(ctx, s, name)
	if err != nil {
		return nil, err
	}
	return &keyPair{KeyName: k.KeyName, KeyType: k.KeyType, Tags: ownTags(k.Tags, ec2TagPair)}, nil
}
