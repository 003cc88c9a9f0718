package state

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/store"
)

// Identity is what users, groups and roles have in common.
type Identity struct {
	Name    string
	Path    string
	ID      string // such as AROA…, never used again
	Created time.Time
	Tags    []types.Tag `json:",omitempty"`
	// Inline are the documents of its own policies, by name, and Attached the ARNs of its managed policies.
	Inline   map[string]string `json:",omitempty"`
	Attached []string          `json:",omitempty"`
	// Boundary is the ARN of the policy that bounds its permissions, or "".
	Boundary string `json:",omitempty"`
}

// User is a user of IAM.
type User struct {
	Identity
	Groups []string `json:",omitempty"` // their names
}

// UserGroup is a group of IAM's users.
type UserGroup struct{ Identity }

// Role is a role of IAM.
type Role struct {
	Identity
	Description       string `json:",omitempty"`
	Trust             string // the document that says who may assume it
	MaxSessionSeconds int32
}

// RoleAt returns the account's role with an ARN, or nil if it is a name alone.
func (v *View) RoleAt(account, arn string) *Role {
	path, ok := strings.CutPrefix(arn, "arn:aws:iam::"+account+":role")
	if !ok {
		return nil
	}
	r := v.Roles.Get(NameKey(path[strings.LastIndexByte(path, '/')+1:]))
	if r == nil || r.Path+r.Name != path {
		return nil
	}
	return r
}

// InstanceProfile holds a role for instances.
type InstanceProfile struct {
	Name    string
	Path    string
	ID      string
	Created time.Time
	Tags    []types.Tag `json:",omitempty"`
	Role    string      `json:",omitempty"` // its name
}

// ManagedPolicy is a policy that identities can have attached.
type ManagedPolicy struct {
	Name        string
	Path        string
	ID          string
	Description string `json:",omitempty"`
	Created     time.Time
	Updated     time.Time
	Tags        []types.Tag `json:",omitempty"`
	Default     int         // the number of the version that counts
	Latest      int         // the highest number that a version ever had
	Versions    []PolicyVersion
}

// PolicyVersion is a version of a managed policy.
type PolicyVersion struct {
	Number   int
	Document string
	Created  time.Time
}

// Version returns a version, or nil.
func (p *ManagedPolicy) Version(number int) *PolicyVersion {
	i := slices.IndexFunc(p.Versions, func(v PolicyVersion) bool { return v.Number == number })
	if i < 0 {
		return nil
	}
	return &p.Versions[i]
}

// Document returns the document that counts.
func (p *ManagedPolicy) Document() string { return p.Version(p.Default).Document }

// AccessKey is an access key of a user.
type AccessKey struct {
	ID       string
	User     string // the user's name
	Secret   []byte // encrypted
	Inactive bool   `json:",omitempty"`
	Created  time.Time
	Token    string `json:",omitempty"` // of the call of CloudFormation's that created it
}

// AccessKeysByUser finds a user's keys by the user's name.
var AccessKeysByUser = Index[*AccessKey]{Name: "user", Value: func(k *AccessKey) string { return k.User }}

// NameKey returns the key of what IAM knows by a name, of which no two may differ by case alone.
func NameKey(name string) string { return strings.ToLower(name) }

var (
	users            = &store.Definition[*User]{Name: "users", Key: func(u *User) string { return NameKey(u.Name) }}
	userGroups       = &store.Definition[*UserGroup]{Name: "user_groups", Key: func(g *UserGroup) string { return NameKey(g.Name) }}
	roles            = &store.Definition[*Role]{Name: "roles", Key: func(r *Role) string { return NameKey(r.Name) }}
	instanceProfiles = &store.Definition[*InstanceProfile]{
		Name: "instance_profiles",
		Key:  func(p *InstanceProfile) string { return NameKey(p.Name) },
	}
	managedPolicies = &store.Definition[*ManagedPolicy]{
		Name: "managed_policies",
		Key:  func(p *ManagedPolicy) string { return NameKey(p.Name) },
	}
	accessKeys = &store.Definition[*AccessKey]{
		Name:    "access_keys",
		Key:     func(k *AccessKey) string { return k.ID },
		Indexes: []Index[*AccessKey]{AccessKeysByUser},
	}
)

// Common returns what a user, a group or a role has in common with the others.
func (i *Identity) Common() *Identity { return i }
