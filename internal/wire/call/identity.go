package call

// Identity is whose key signed a call. Without a Task or a Role and with Node false that's the account's owner, or anybody where
// signatures aren't checked.
type Identity struct {
	Principal string // the signer's ARN; empty if signatures aren't checked
	Task      string // the ARN of the task whose credentials signed
	Role      string // the ARN of the role that a task's or a session's credentials are for
	Node      bool   // a node signed, with the key of its own
	// Instance is the ARN of the container instance that a node's key belongs to. It's empty until that has registered.
	Instance string
}
