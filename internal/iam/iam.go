// Package iam is AWS Identity and Access Management: users, groups, roles, instance profiles, policies and access keys. A Service has the
// methods of the SDK's client, over the store. Secret access keys are encrypted before they become rows. Package policy says what policies
// allow; this one keeps them. It knows nothing of HTTP, and what signs a call asks it for the secrets of users' keys.
package iam

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
)

// Options are the account of the service, and what it uses.
type Options struct {
	account.Account
	Vault *vault.Vault // encrypts secret access keys
	// Enforce is whether roles that are a name alone may do nothing, as roles without policies. Otherwise nothing limits them.
	Enforce bool
}

// Service is IAM for one account.
type Service struct {
	store *state.Store
	opts  Options
	aws   map[string]*state.ManagedPolicy // AWS's own policies, by ARN
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service { return &Service{store, opts, awsPolicies()} }

// now returns the time to the second, IAM's precision.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Second) }

// newID returns a new unique id with a prefix that tells what it is of.
func newID(prefix string) string {
	var b [11]byte
	rand.Read(b[:]) // never fails
	return prefix + base32.StdEncoding.EncodeToString(b[:])[:17]
}

// arn returns the ARN of what has a name and a path.
func (s *Service) arn(kind, path, name string) string { return s.opts.GlobalARN("iam", kind+path+name) }

// The errors of IAM. Clients know them by their codes.

func invalid(format string, args ...any) error {
	return account.Refuse("ValidationError", format, args...)
}

func invalidInput(format string, args ...any) error {
	return &types.InvalidInputException{Message: account.Message(format, args...)}
}

func noSuch(format string, args ...any) error {
	return &types.NoSuchEntityException{Message: account.Message(format, args...)}
}

func exists(format string, args ...any) error {
	return &types.EntityAlreadyExistsException{Message: account.Message(format, args...)}
}

func conflict(format string, args ...any) error {
	return &types.DeleteConflictException{Message: account.Message(format, args...)}
}

func exceeded(format string, args ...any) error {
	return &types.LimitExceededException{Message: account.Message(format, args...)}
}

// kind is users, groups or roles: what has policies.
type kind struct {
	noun      string // in messages and ARNs
	quota     string // in the names of quotas
	maxInline int    // characters of all inline policies together
	get       func(*state.View, string) *state.Identity
	put       func(*state.Tx, string, *state.Identity) // replaces what get returned
	all       func(*state.View) iter.Seq[*state.Identity]
}

var (
	userKind = &kind{
		noun:      "user",
		quota:     "User",
		maxInline: 2048,
		get:       func(v *state.View, name string) *state.Identity { return identityOf(v.Users, name) },
		put: func(tx *state.Tx, name string, i *state.Identity) {
			row := *tx.Users.Get(state.NameKey(name))
			row.Identity = *i
			tx.Users.Put(&row)
		},
		all: func(v *state.View) iter.Seq[*state.Identity] { return identities(v.Users) },
	}
	groupKind = &kind{
		noun:      "group",
		quota:     "Group",
		maxInline: 5120,
		get:       func(v *state.View, name string) *state.Identity { return identityOf(v.UserGroups, name) },
		put: func(tx *state.Tx, _ string, i *state.Identity) {
			tx.UserGroups.Put(&state.UserGroup{Identity: *i})
		},
		all: func(v *state.View) iter.Seq[*state.Identity] { return identities(v.UserGroups) },
	}
	roleKind = &kind{
		noun:      "role",
		quota:     "Role",
		maxInline: 10240,
		get:       func(v *state.View, name string) *state.Identity { return identityOf(v.Roles, name) },
		put: func(tx *state.Tx, name string, i *state.Identity) {
			row := *tx.Roles.Get(state.NameKey(name))
			row.Identity = *i
			tx.Roles.Put(&row)
		},
		all: func(v *state.View) iter.Seq[*state.Identity] { return identities(v.Roles) },
	}
	kinds = []*kind{userKind, groupKind, roleKind}
)

// identified is a row with an identity.
type identified[R any] interface {
	*R
	Common() *state.Identity
}

func identityOf[R any, P identified[R]](table state.Table[*R], name string) *state.Identity {
	if row := table.Get(state.NameKey(name)); row != nil && P(row).Common().Name == name {
		return P(row).Common()
	}
	return nil
}

func identities[R any, P identified[R]](table state.Table[*R]) iter.Seq[*state.Identity] {
	return func(yield func(*state.Identity) bool) {
		for row := range table.All() {
			if !yield(P(row).Common()) {
				return
			}
		}
	}
}

// find returns an identity, or NoSuchEntity.
func (k *kind) find(v *state.View, name string) (*state.Identity, error) {
	if i := k.get(v, name); i != nil {
		return i, nil
	}
	return nil, noSuch("The %s with name %s cannot be found.", k.noun, name)
}

// change changes an identity. Roles that are linked to a service are changed by nobody.
func (s *Service) change(ctx context.Context, k *kind, name string, change func(*state.Tx, *state.Identity) error) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := k.find(tx.View, name)
		if err != nil {
			return err
		}
		if err := unprotected(k, old); err != nil {
			return err
		}
		changed := *old
		changed.Inline = maps.Clone(old.Inline)
		changed.Attached = slices.Clone(old.Attached)
		if err := change(tx, &changed); err != nil {
			return err
		}
		k.put(tx, name, &changed)
		return nil
	})
}

// linkedPath begins the paths of roles that are linked to a service.
const linkedPath = "/aws-service-role/"

// unprotected refuses to change a role that is linked to a service.
func unprotected(k *kind, i *state.Identity) error {
	if k != roleKind || !strings.HasPrefix(i.Path, linkedPath) {
		return nil
	}
	return &types.UnmodifiableEntityException{Message: account.Message(
		"Cannot perform the operation on the protected role '%s' - this role is only modifiable by AWS", i.Name)}
}

// newIdentity returns a new identity, of whose name there must be none yet.
func (s *Service) newIdentity(name, path, boundary *string, tags []types.Tag, prefix string) (i state.Identity, err error) {
	i = state.Identity{Name: *name, Path: aws.ToString(path), ID: newID(prefix), Created: s.now(), Tags: tags, Boundary: aws.ToString(boundary)}
	if i.Path == "" {
		i.Path = "/"
	}
	if err := checkPath(i.Path); err != nil {
		return i, err
	}
	return i, checkTags(tags)
}

// checkPath checks what the model's pattern of paths doesn't.
func checkPath(path string) error {
	if path[0] != '/' || path[len(path)-1] != '/' {
		return invalid("The specified value for path is invalid. It must begin and end with / and contain only alphanumeric characters " +
			"and/or / characters.")
	}
	return nil
}

// parse parses a policy document that somebody puts, or asks about.
func parse(kind policy.Kind, document string) (*policy.Policy, error) {
	p, err := policy.Check(kind, document)
	var wrong *policy.Malformed
	if errors.As(err, &wrong) {
		return nil, &types.MalformedPolicyDocumentException{Message: &wrong.Message}
	}
	return p, err
}

// length returns how long a document is for IAM's quotas, which don't count white space.
func length(document string) (n int) {
	for _, r := range document {
		if !strings.ContainsRune(" \t\r\n", r) {
			n++
		}
	}
	return n
}

// encoded returns a document as IAM's answers have it.
func encoded(document string) *string {
	return aws.String(strings.ReplaceAll(url.QueryEscape(document), "+", "%20"))
}

// pages describes the pages of an operation.
func pages(operation string) account.List {
	return account.List{
		Kind:     "iam:" + operation,
		Default:  100,
		Most:     1000,
		BadLimit: func(limit int) error { return invalid("MaxItems must be from 1 to 1000, not %d.", limit) },
		BadToken: func() error { return invalid("Invalid Marker.") },
	}
}

// page returns a page of rows that are sorted by what name returns.
func page[R any](operation string, rows []R, limit *int32, marker *string, name func(R) string) (on []R, truncated bool, next *string, err error) {
	if rows == nil {
		rows = []R{} // an empty list's element is there, too, in IAM's answers
	}
	on, next, err = account.Sorted(pages(operation), rows, limit, marker, func(r R) string { return state.NameKey(name(r)) })
	return on, next != nil, next, err
}

// under returns the rows whose path begins with a prefix.
func under[R any](rows iter.Seq[*R], prefix *string, path func(*R) string) (found []*R) {
	for row := range rows {
		if strings.HasPrefix(path(row), aws.ToString(prefix)) {
			found = append(found, row)
		}
	}
	return found
}
