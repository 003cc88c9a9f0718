package ec2

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/ec2/keypair"
	"github.com/pintle/pintle/internal/state"
)

// maxKeyPairs is how many key pairs a region has: "Amazon EC2 service quotas".
const maxKeyPairs = 5000

var keyPairs = kind[state.KeyPair]{
	name:   types.ResourceTypeKeyPair,
	prefix: "key",
	code:   "InvalidKeyPair.NotFound",
	text:   "The key pair ID '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.KeyPair] { return v.KeyPairs },
	of:     func(r *state.KeyPair) (*string, *[]types.Tag) { return r.KeyPairId, &r.Tags },
	fields: fields[state.KeyPair]{
		"key-pair-id": func(r *state.KeyPair) []string { return optional(r.KeyPairId) },
		"fingerprint": func(r *state.KeyPair) []string { return optional(r.KeyFingerprint) },
		"key-name":    func(r *state.KeyPair) []string { return optional(r.KeyName) },
	},
}

// findKey returns the key pair with a name.
func findKey(v *state.View, name string) (*state.KeyPair, error) {
	for k := range v.KeyPairs.All() {
		if *k.KeyName == name {
			return k, nil
		}
	}
	return nil, refuse("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", name)
}

// CreateKeyPair makes a key pair. Its private half is in the answer, and kept nowhere.
func (s *Service) CreateKeyPair(ctx context.Context, in *ec2.CreateKeyPairInput) (*ec2.CreateKeyPairOutput, error) {
	if cmp.Or(in.KeyFormat, types.KeyFormatPem) != types.KeyFormatPem {
		return nil, refuse("UnsupportedOperation", "KeyFormat: Pintle's private keys are PEM; puttygen makes other formats of it.")
	}
	kind := cmp.Or(in.KeyType, types.KeyTypeRsa)
	if !slices.Contains(kind.Values(), kind) {
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter KeyType is invalid.", kind)
	}
	row, err := s.newKey(ctx, in.KeyName, in.TagSpecifications)
	if err != nil {
		return nil, err
	}
	made, err := keypair.New(kind == types.KeyTypeEd25519, *row.KeyName)
	if err != nil {
		return nil, err
	}
	if err := s.putKey(ctx, row, &made.Public, in.DryRun); err != nil {
		return nil, err
	}
	return &ec2.CreateKeyPairOutput{
		KeyPairId:      row.KeyPairId,
		KeyName:        row.KeyName,
		KeyFingerprint: row.KeyFingerprint,
		KeyMaterial:    &made.Private,
		Tags:           row.Tags,
	}, nil
}

// ImportKeyPair takes the public half of somebody's key pair.
func (s *Service) ImportKeyPair(ctx context.Context, in *ec2.ImportKeyPairInput) (*ec2.ImportKeyPairOutput, error) {
	row, err := s.newKey(ctx, in.KeyName, in.TagSpecifications)
	if err != nil {
		return nil, err
	}
	if len(in.PublicKeyMaterial) == 0 {
		return nil, missing("PublicKeyMaterial")
	}
	public, err := keypair.Read(string(in.PublicKeyMaterial), *row.KeyName)
	if err != nil {
		return nil, refuse("InvalidKey.Format", "Key is not in valid OpenSSH public key format")
	}
	if err := s.putKey(ctx, row, &public, in.DryRun); err != nil {
		return nil, err
	}
	return &ec2.ImportKeyPairOutput{
		KeyPairId:      row.KeyPairId,
		KeyName:        row.KeyName,
		KeyFingerprint: row.KeyFingerprint,
		Tags:           row.Tags,
	}, nil
}

// newKey checks a new key pair's name and tags.
func (s *Service) newKey(ctx context.Context, name *string, specifications []types.TagSpecification) (*state.KeyPair, error) {
	if aws.ToString(name) == "" {
		return nil, missing("KeyName")
	}
	if !isGroupText(*name) {
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter KeyName is invalid.", *name)
	}
	tags, err := newTags(ctx, specifications, types.ResourceTypeKeyPair)
	return &state.KeyPair{KeyPairInfo: types.KeyPairInfo{
		KeyPairId:  new(state.NewEC2ID("key")),
		KeyName:    name,
		CreateTime: new(s.now()),
		Tags:       tags,
	}}, err
}

// putKey keeps a key pair's public half.
func (s *Service) putKey(ctx context.Context, row *state.KeyPair, public *keypair.Public, dryRun *bool) error {
	row.KeyFingerprint = &public.Fingerprint
	row.PublicKey = &public.Line
	row.KeyType = types.KeyTypeRsa
	if public.IsEd25519 {
		row.KeyType = types.KeyTypeEd25519
	}
	return s.write(ctx, dryRun, func(tx *state.Tx) error {
		if other, _ := findKey(tx.View, *row.KeyName); other != nil {
			return refuse("InvalidKeyPair.Duplicate", "The keypair already exists")
		}
		tx.KeyPairs.Put(row)
		return checkRoom(count(tx.KeyPairs.All())-1, maxKeyPairs, "KeyPairLimitExceeded", "key pairs")
	})
}

// DescribeKeyPairs describes key pairs.
func (s *Service) DescribeKeyPairs(_ context.Context, in *ec2.DescribeKeyPairsInput) (*ec2.DescribeKeyPairsOutput, error) {
	v := s.store.View()
	ids := slices.Clone(in.KeyPairIds)
	for _, name := range in.KeyNames {
		k, err := findKey(v, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, *k.KeyPairId)
	}
	rows, _, err := keyPairs.describe(v, query{"DescribeKeyPairs", ids, in.Filters, nil, nil, in.DryRun})
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeKeyPairsOutput{KeyPairs: show(rows, func(r *state.KeyPair) types.KeyPairInfo {
		shown := r.KeyPairInfo
		if !aws.ToBool(in.IncludePublicKey) {
			shown.PublicKey = nil
		}
		return shown
	})}, nil
}

// DeleteKeyPair deletes a key pair. That there is none is no error.
func (s *Service) DeleteKeyPair(ctx context.Context, in *ec2.DeleteKeyPairInput) (*ec2.DeleteKeyPairOutput, error) {
	if aws.ToString(in.KeyName) == "" && aws.ToString(in.KeyPairId) == "" {
		return nil, missing("KeyName")
	}
	out := &ec2.DeleteKeyPairOutput{Return: aws.Bool(true)}
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		row := tx.KeyPairs.Get(aws.ToString(in.KeyPairId))
		if in.KeyName != nil {
			row, _ = findKey(tx.View, *in.KeyName)
		}
		if row != nil {
			out.KeyPairId = row.KeyPairId
			tx.KeyPairs.Delete(*row.KeyPairId)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
