package resources

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// secret has the properties of AWS::SecretsManager::Secret. Its physical ID is the ARN.
type secret struct {
	Name                 *string `cfn:"create"`
	Description          *string
	GenerateSecretString *generatedSecret `cfn:"write"`
	KmsKeyId             *string
	SecretString         *string `cfn:"write"`
	Tags                 []Tag
}

// generatedSecret says which password a secret is made of, and where in a JSON object it stands.
type generatedSecret struct {
	ExcludeCharacters       *string
	ExcludeLowercase        *bool
	ExcludeNumbers          *bool
	ExcludePunctuation      *bool
	ExcludeUppercase        *bool
	GenerateStringKey       *string
	IncludeSpace            *bool
	PasswordLength          *int64
	RequireEachIncludedType *bool
	SecretStringTemplate    *string
}

var _ = add(&kind[*secret]{
	name:       "AWS::SecretsManager::Secret",
	live:       liveSecret,
	list:       listSecrets,
	identifier: []string{"Id"},
	attributes: []string{"Id"},
	find:       findSecret,
	create: func(ctx context.Context, s Step, c *secret) (string, error) {
		value, err := secretValue(ctx, s, c)
		if err != nil {
			return "", err
		}
		out, err := call.Do[secretsmanager.CreateSecretOutput](ctx, s.Services, &secretsmanager.CreateSecretInput{
			Name:               new(secretName(s, c)),
			ClientRequestToken: &s.Token,
			Description:        c.Description,
			KmsKeyId:           c.KmsKeyId,
			SecretString:       value,
			Tags:               tagList(c.Tags, secretTag),
		})
		if err != nil {
			return "", err
		}
		return *out.ARN, nil
	},
	update: updateSecret,
	delete: func(ctx context.Context, s Step, arn string, _ *secret) error {
		in := &secretsmanager.DeleteSecretInput{SecretId: &arn, ForceDeleteWithoutRecovery: aws.Bool(true)}
		return did[secretsmanager.DeleteSecretOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, arn string, _ *secret) (Made, error) {
		out, err := call.Do[secretsmanager.DescribeSecretOutput](ctx, s.Services, &secretsmanager.DescribeSecretInput{SecretId: &arn})
		if err != nil {
			return Made{}, err
		}
		if out.DeletedDate != nil {
			return Made{}, errMissing
		}
		return Made{Attributes: map[string]any{"Id": arn}}, nil
	},
})

func secretTag(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }

func secretName(s Step, c *secret) string {
	if c.Name != nil {
		return *c.Name
	}
	return s.Name + "-" + s.random()
}

// findSecret returns the secret that has a version with the step's token. One without a value has none, but is made twice without harm.
func findSecret(ctx context.Context, s Step, c *secret) (string, error) {
	in := &secretsmanager.DescribeSecretInput{SecretId: new(secretName(s, c))}
	out, err := call.Do[secretsmanager.DescribeSecretOutput](ctx, s.Services, in)
	if isMissing(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if _, ours := out.VersionIdsToStages[s.Token]; !ours {
		return "", nil
	}
	return *out.ARN, nil
}

// secretValue returns what a secret is to hold, or nil if it's only a name.
func secretValue(ctx context.Context, s Step, c *secret) (*string, error) {
	g := c.GenerateSecretString
	switch {
	case g == nil:
		return c.SecretString, nil
	case c.SecretString != nil:
		return nil, template.Errorf("You can't specify both SecretString and GenerateSecretString")
	case (g.GenerateStringKey == nil) != (g.SecretStringTemplate == nil):
		return nil, template.Errorf("You must specify both GenerateStringKey and SecretStringTemplate, or neither of them")
	}
	out, err := call.Do[secretsmanager.GetRandomPasswordOutput](ctx, s.Services, &secretsmanager.GetRandomPasswordInput{
		ExcludeCharacters:       g.ExcludeCharacters,
		ExcludeLowercase:        g.ExcludeLowercase,
		ExcludeNumbers:          g.ExcludeNumbers,
		ExcludePunctuation:      g.ExcludePunctuation,
		ExcludeUppercase:        g.ExcludeUppercase,
		IncludeSpace:            g.IncludeSpace,
		PasswordLength:          g.PasswordLength,
		RequireEachIncludedType: g.RequireEachIncludedType,
	})
	if err != nil {
		return nil, err
	}
	if g.GenerateStringKey == nil {
		return out.RandomPassword, nil
	}
	var object map[string]any
	if json.Unmarshal([]byte(*g.SecretStringTemplate), &object) != nil || object == nil {
		return nil, template.Errorf("Could not parse SecretStringTemplate JSON")
	}
	object[*g.GenerateStringKey] = *out.RandomPassword
	return document(object), nil
}

// updateSecret changes a secret. A generated value stays as long as what it's generated from does.
func updateSecret(ctx context.Context, s Step, arn string, before, after *secret) error {
	in := &secretsmanager.UpdateSecretInput{
		SecretId:           &arn,
		ClientRequestToken: new(state.NewUUID()), // a value that comes back is a new version, too
		Description:        aws.String(aws.ToString(after.Description)),
		KmsKeyId:           after.KmsKeyId,
	}
	if hasNewValue(before, after) {
		value, err := secretValue(ctx, s, after)
		if err != nil {
			return err
		}
		in.SecretString = value
	}
	if err := did[secretsmanager.UpdateSecretOutput](ctx, s, in); err != nil {
		return err
	}
	return retag(before.Tags, after.Tags, func(gone []string) error {
		return did[secretsmanager.UntagResourceOutput](ctx, s, &secretsmanager.UntagResourceInput{SecretId: &arn, TagKeys: gone})
	}, func() error {
		return did[secretsmanager.TagResourceOutput](ctx, s, &secretsmanager.TagResourceInput{SecretId: &arn, Tags: tagList(after.Tags, secretTag)})
	})
}

// hasNewValue reports whether an update gives a secret another value. One that was only to be made whole got its value when it was made.
func hasNewValue(before, after *secret) bool {
	if reflect.DeepEqual(before, &secret{}) {
		return false
	}
	return !reflect.DeepEqual(before.GenerateSecretString, after.GenerateSecretString) ||
		!reflect.DeepEqual(before.SecretString, after.SecretString)
}

// secretPolicy has the properties of AWS::SecretsManager::ResourcePolicy. Its physical ID is the secret's ARN.
type secretPolicy struct {
	SecretId          *string `cfn:"required,create"`
	BlockPublicPolicy *bool   `cfn:"write"`
	ResourcePolicy    any     `cfn:"required"`
}

var _ = add(&kind[*secretPolicy]{
	name:       "AWS::SecretsManager::ResourcePolicy",
	live:       liveSecretPolicy,
	identifier: []string{"Id"},
	attributes: []string{"Id"},
	id:         func(_ Step, p *secretPolicy) string { return aws.ToString(p.SecretId) },
	create: func(ctx context.Context, s Step, p *secretPolicy) (string, error) {
		return *p.SecretId, putSecretPolicy(ctx, s, p)
	},
	update: func(ctx context.Context, s Step, _ string, _, after *secretPolicy) error {
		return putSecretPolicy(ctx, s, after)
	},
	delete: func(ctx context.Context, s Step, id string, _ *secretPolicy) error {
		return did[secretsmanager.DeleteResourcePolicyOutput](ctx, s, &secretsmanager.DeleteResourcePolicyInput{SecretId: &id})
	},
	read: func(ctx context.Context, s Step, id string, _ *secretPolicy) (Made, error) {
		out, err := call.Do[secretsmanager.GetResourcePolicyOutput](ctx, s.Services, &secretsmanager.GetResourcePolicyInput{SecretId: &id})
		if err != nil {
			return Made{}, err
		}
		if out.ResourcePolicy == nil {
			return Made{}, errMissing
		}
		return Made{Attributes: map[string]any{"Id": id}}, nil
	},
})

func putSecretPolicy(ctx context.Context, s Step, p *secretPolicy) error {
	return did[secretsmanager.PutResourcePolicyOutput](ctx, s, &secretsmanager.PutResourcePolicyInput{
		SecretId:          p.SecretId,
		BlockPublicPolicy: p.BlockPublicPolicy,
		ResourcePolicy:    document(p.ResourcePolicy),
	})
}

func liveSecret(ctx context.Context, s Step, arn string, _ *secret) (*secret, error) {
	out, err := call.Do[secretsmanager.DescribeSecretOutput](ctx, s.Services, &secretsmanager.DescribeSecretInput{SecretId: &arn})
	if err == nil && out.DeletedDate != nil {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	return &secret{
		Name:        out.Name,
		Description: out.Description,
		KmsKeyId:    out.KmsKeyId,
		Tags:        ownTags(out.Tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value }),
	}, nil
}

func liveSecretPolicy(ctx context.Context, s Step, id string, _ *secretPolicy) (*secretPolicy, error) {
	out, err := call.Do[secretsmanager.GetResourcePolicyOutput](ctx, s.Services, &secretsmanager.GetResourcePolicyInput{SecretId: &id})
	if err == nil && out.ResourcePolicy == nil {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	return &secretPolicy{SecretId: &id, ResourcePolicy: parsed(out.ResourcePolicy)}, nil
}

func listSecrets(ctx context.Context, s Step, _ *secret) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[secretsmanager.ListSecretsOutput](ctx, s.Services, &secretsmanager.ListSecretsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.SecretList {
			ids = append(ids, *x.ARN)
		}
		return ids, out.NextToken, nil
	})
}
