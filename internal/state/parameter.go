package state

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/store"
)

// Parameter is a parameter of Parameter Store: what all of its versions share.
type Parameter struct {
	Name    string
	Version int64 // the latest
	Tier    types.ParameterTier
	Tags    []types.Tag `json:",omitempty"`
	// Expires is when its policy ends it, or nil for never.
	Expires *time.Time `json:",omitzero"`
}

// Expired reports whether a policy has ended the parameter.
func (p *Parameter) Expired(now time.Time) bool { return p.Expires != nil && !p.Expires.After(now) }

// ParameterVersion is a version of a parameter.
type ParameterVersion struct {
	Name    string
	Version int64
	Type    types.ParameterType
	// Value is the value of a parameter that isn't a SecureString, and Encrypted that of one that is.
	Value     string `json:",omitempty"`
	Encrypted []byte `json:",omitempty"`

	KeyID            string `json:",omitempty"`
	Description      string `json:",omitempty"`
	AllowedPattern   string `json:",omitempty"`
	DataType         string
	Tier             types.ParameterTier
	Policies         []types.ParameterInlinePolicy `json:",omitempty"`
	Labels           []string                      `json:",omitempty"`
	LastModified     time.Time
	LastModifiedUser string
}

// Key returns the name and the version. Keys sort by version.
func (p *ParameterVersion) Key() string { return ParameterVersionKey(p.Name, p.Version) }

// ParameterVersionKey returns the key of a parameter's version.
func ParameterVersionKey(name string, version int64) string {
	return fmt.Sprintf("%s %019d", name, version)
}

// ParameterVersionsAfter returns a parameter's versions after one, from old to new.
func (v *View) ParameterVersionsAfter(name string, version int64) iter.Seq[*ParameterVersion] {
	return func(yield func(*ParameterVersion) bool) {
		for row := range v.ParameterVersions.Behind(ParameterVersionKey(name, version)) {
			if row.Name != name || !yield(row) {
				return
			}
		}
	}
}

// DeleteParameter deletes a parameter with all of its versions.
func (tx *Tx) DeleteParameter(name string) {
	tx.Parameters.Delete(name)
	for row := range tx.ParameterVersionsAfter(name, 0) {
		tx.ParameterVersions.Delete(row.Key())
	}
}

// ParametersUnder returns the parameters whose names begin with a prefix and come after another name.
func (v *View) ParametersUnder(prefix, after string) iter.Seq[*Parameter] {
	return func(yield func(*Parameter) bool) {
		if row := v.Parameters.Get(prefix); row != nil && after < prefix && !yield(row) {
			return
		}
		for row := range v.Parameters.Behind(max(prefix, after)) {
			if !strings.HasPrefix(row.Name, prefix) || !yield(row) {
				return
			}
		}
	}
}

// HasEncrypted reports whether any row has something that only the control plane's key reads.
func (v *View) HasEncrypted() bool {
	for row := range v.ParameterVersions.All() {
		if len(row.Encrypted) > 0 {
			return true
		}
	}
	for range v.SecretVersions.All() {
		return true
	}
	for range v.AccessKeys.All() {
		return true
	}
	return v.hasEncryptedStacks()
}

var (
	parameters = &store.Definition[*Parameter]{
		Name:     "parameters",
		Key:      func(p *Parameter) string { return p.Name },
		Lifetime: store.KeepFor(0, func(p *Parameter) *time.Time { return p.Expires }),
	}

	parameterVersions = &store.Definition[*ParameterVersion]{
		Name: "parameter_versions",
		Key:  (*ParameterVersion).Key,
		// They live as long as the parameter.
		Lifetime: func(t Table[*ParameterVersion], _ time.Time) (expired []string) {
			all := parameters.In(t.View())
			for row := range t.All() {
				if all.Get(row.Name) == nil {
					expired = append(expired, row.Key())
				}
			}
			return expired
		},
	}
)
