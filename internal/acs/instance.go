package acs

import "time"

// PintleInstance tells a node what its machine is as an EC2 instance, for the instance metadata service that it has for its tasks. It comes
// first of all, and again when something changes.
type PintleInstance struct {
	InstanceID     string            `json:"instanceId"`
	ImageID        string            `json:"imageId,omitempty"`
	InstanceType   string            `json:"instanceType"`
	Architecture   string            `json:"architecture,omitempty"`
	Account        string            `json:"account"`
	Region         string            `json:"region"`
	Zone           string            `json:"zone"`
	PrivateIPv4    string            `json:"privateIPv4Address,omitempty"`
	Hostname       string            `json:"hostname,omitempty"`
	Reservation    string            `json:"reservationId"`
	LaunchIndex    int               `json:"launchIndex"`
	LaunchedAt     time.Time         `json:"launchedAt"`
	SecurityGroups []string          `json:"securityGroups,omitempty"` // names
	UserData       string            `json:"userData,omitempty"`       // in base64
	Tags           map[string]string `json:"tags,omitempty"`           // nil if the service doesn't tell them
	// TokensRequired, HopLimit and Disabled are the metadata options: version 2 alone, how many hops a token may go, no service at all.
	TokensRequired bool `json:"tokensRequired,omitempty"`
	HopLimit       int  `json:"hopLimit"`
	Disabled       bool `json:"disabled,omitempty"`
	// Profile is the instance profile, or nil.
	Profile *InstanceProfile `json:"profile,omitempty"`
}

// InstanceProfile is an instance's profile, and the credentials of its role.
type InstanceProfile struct {
	Arn         string              `json:"arn"`
	ID          string              `json:"id"`
	Role        string              `json:"role,omitempty"` // its name
	UpdatedAt   time.Time           `json:"updatedAt"`
	Credentials *IAMRoleCredentials `json:"credentials,omitempty"`
}

func (*PintleInstance) messageType() string { return "PintleInstance" }
