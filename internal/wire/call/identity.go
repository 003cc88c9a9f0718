package call

import "strings"

// Identity is whose key signed a call.
type Identity struct {
	Principal string // the signer's ARN; empty if signatures aren't checked
	Task      string // the ARN of the task whose credentials signed
	Role      string // the ARN of the role that a task's or a session's credentials are for
	Session   string // what the session has besides its role, as package iam writes it: policies that limit it, tags; "" for nothing
	Node      bool   // a node signed, with the key of its own
	// Instance is the ARN of the container instance that a node's key belongs to. It's empty until that has registered.
	Instance string
}

// User returns the path and name of the IAM user whose key signed, or "".
func (i Identity) User() string {
	_, user, _ := strings.Cut(i.Principal, ":user/")
	if i.Node {
		return ""
	}
	return user
}

// IsOwner reports whether the account's owner signed, or anybody where signatures aren't checked.
func (i Identity) IsOwner() bool {
	return i.Task == "" && i.Role == "" && !i.Node && i.User() == ""
}
