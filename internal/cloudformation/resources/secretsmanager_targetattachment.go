package resources

import (
	"context"

	"github.com/pintle/pintle/internal/cloudformation/template"
)

// secretTarget has the properties of AWS::SecretsManager::SecretTargetAttachment, which writes into a secret how a database is reached.
// Pintle has none of AWS's databases, so each is refused by the name of its type, before anything is made.
type secretTarget struct {
	SecretId   *string `cfn:"required"`
	TargetId   *string `cfn:"required"`
	TargetType *string `cfn:"required"`
}

var _ = add(&kind[*secretTarget]{
	name:       "AWS::SecretsManager::SecretTargetAttachment",
	attributes: []string{"Id"},
	check: func(t *secretTarget) (faults []string) {
		if t.TargetType == nil {
			return nil // it isn't known yet
		}
		return []string{"#/TargetType: " + unservedTarget(*t.TargetType)}
	},
	create: func(_ context.Context, _ Step, t *secretTarget) (string, error) {
		return "", template.Errorf("%s", unservedTarget(*t.TargetType))
	},
	delete: func(context.Context, Step, string, *secretTarget) error { return nil },
})

func unservedTarget(name string) string {
	return "there are no targets of type " + name + ": Pintle has no databases to attach a secret to"
}
