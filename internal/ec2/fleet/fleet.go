// Package fleet provides the machines of instances. Local runs an agent per instance on this machine, Static wakes the
// user's own machines, and Command lets the user's own program start and end machines. Each has the three methods that
// the loop in ec2/machines calls. A call may come twice, or again after a crash: a provider does what isn't done yet.
// The package knows nothing of the control plane's state.
package fleet

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// Machine describes the machine that an instance needs. Its JSON is the contract of Command: docs/fleet.md.
type Machine struct {
	InstanceID   string            `json:"instanceId"`
	InstanceType string            `json:"instanceType"`
	ImageID      string            `json:"imageId,omitempty"`
	Zone         string            `json:"availabilityZone,omitempty"`
	Group        string            `json:"autoScalingGroupName,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
	UserData     string            `json:"userData,omitempty"` // base64, as given
	// What the user data tells the agent.
	Cluster    string            `json:"cluster"`
	Attributes map[string]string `json:"attributes,omitempty"`
	// Stack is the ARN of the stack that has made the instance or its group, or "".
	Stack string `json:"stackId,omitempty"`
	// BlockIMDS keeps tasks in network mode awsvpc from the instance metadata service.
	BlockIMDS bool `json:"blockImds,omitempty"`
	// Where the agent finds the control plane.
	Endpoint string `json:"endpoint"`
	Region   string `json:"region"`
}

// ErrCapacity means that there is no machine for an instance at the moment. It is EC2's error code.
var ErrCapacity = errors.New("InsufficientInstanceCapacity")

// UserDataAttribute is the attribute of container instances on which user data is run. Its value is run.
const UserDataAttribute = "pintle.user-data"

// setting matches a line of /etc/ecs/ecs.config, as user data writes it: with echo, or in a here-document.
var setting = regexp.MustCompile(`\b(ECS_[A-Z_]+)=('[^']*'|"(?:[^"\\]|\\.)*"|\{[^}\n]*\}|[^\s;>"'|&]*)`)

// Configure reads what the user data tells the agent, itself or through cfn-init: the cluster (default if it names none),
// attributes, and whether tasks are kept from the instance metadata service.
// See https://docs.aws.amazon.com/AmazonECS/latest/developerguide/bootstrap_container_instance.html
func (m *Machine) Configure(metadata Metadata) {
	m.Cluster = "default"
	script, err := base64.StdEncoding.DecodeString(m.UserData)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(script) + "\n" + initialized(string(script), metadata)) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, s := range setting.FindAllStringSubmatch(line, -1) {
			value := strings.Trim(s[2], `'"`)
			switch {
			case s[1] == "ECS_CLUSTER" && value != "":
				m.Cluster = value
			case s[1] == "ECS_AWSVPC_BLOCK_IMDS":
				m.BlockIMDS = strings.EqualFold(value, "true")
			case s[1] == "ECS_INSTANCE_ATTRIBUTES":
				attributes := map[string]string{}
				if json.Unmarshal([]byte(strings.ReplaceAll(value, `\"`, `"`)), &attributes) == nil {
					m.Attributes = attributes
				}
			}
		}
	}
}
