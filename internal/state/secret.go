package state

import (
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/pintle/pintle/internal/store"
)

// Secret is a secret of Secrets Manager: what all of its versions share.
type Secret struct {
	Name        string
	ARN         string // ends with six random characters, which tell it from earlier secrets of the name
	Token       string // the ClientRequestToken that it was created with
	Description string `json:",omitempty"`
	// Stages are the ids of versions by their staging labels, each of which is on one version at a time.
	Stages  map[string]string `json:",omitempty"`
	Tags    []types.Tag       `json:",omitempty"`
	Policy  string            `json:",omitempty"` // the resource policy
	Created time.Time
	Changed time.Time
	// Accessed is the day on which a value was last read, or nil for never.
	Accessed *time.Time `json:",omitzero"`
	// DeletedAt is when the recovery window of a deleted secret ends, and the secret with it. It's nil for one that isn't deleted.
	DeletedAt *time.Time `json:",omitzero"`
}

// Gone reports whether the recovery window of a deleted secret is over.
func (s *Secret) Gone(now time.Time) bool { return s.DeletedAt != nil && !s.DeletedAt.After(now) }

// SecretVersion is the value of a version of a secret. It never changes.
type SecretVersion struct {
	Name      string
	ID        string
	Encrypted []byte
	Binary    bool // it was given as SecretBinary
	Created   time.Time
}

// Key returns the name and the id.
func (v *SecretVersion) Key() string { return SecretVersionKey(v.Name, v.ID) }

// SecretVersionKey returns the key of a secret's version. Names have no spaces.
func SecretVersionKey(name, id string) string { return name + " " + id }

// VersionsOfSecret returns a secret's versions, sorted by their ids.
func (v *View) VersionsOfSecret(name string) iter.Seq[*SecretVersion] {
	return func(yield func(*SecretVersion) bool) {
		for row := range v.SecretVersions.Behind(SecretVersionKey(name, "")) {
			if row.Name != name || !yield(row) {
				return
			}
		}
	}
}

// DeleteSecret deletes a secret with all of its versions.
func (tx *Tx) DeleteSecret(name string) {
	tx.Secrets.Delete(name)
	for row := range tx.VersionsOfSecret(name) {
		tx.SecretVersions.Delete(row.Key())
	}
}

// secretTables are the tables of Secrets Manager.
type secretTables struct {
	Secrets        Table[*Secret]
	SecretVersions Table[*SecretVersion]
}

// newSecretTables binds the tables to a view.
func newSecretTables(v *store.View) secretTables {
	return secretTables{Secrets: secrets.In(v), SecretVersions: secretVersions.In(v)}
}

var (
	secrets = &store.Definition[*Secret]{
		Name:     "secrets",
		Key:      func(s *Secret) string { return s.Name },
		Lifetime: store.KeepFor(0, func(s *Secret) *time.Time { return s.DeletedAt }),
	}

	secretVersions = &store.Definition[*SecretVersion]{
		Name: "secret_versions",
		Key:  (*SecretVersion).Key,
		// They live as long as the secret.
		Lifetime: func(t Table[*SecretVersion], _ time.Time) (expired []string) {
			all := secrets.In(t.View())
			for row := range t.All() {
				if all.Get(row.Name) == nil {
					expired = append(expired, row.Key())
				}
			}
			return expired
		},
	}
)
