// Package fleet is where instances' machines come from: Local runs an agent for each on this machine, Static wakes
// machines of one's own, and Command has programs of one's own start and end them. Each has the three methods that the
// loop in ec2/machines calls, which may come twice, or again after a crash: a provider does what is not done yet.
// It knows nothing of the control plane's state.
package fleet

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// Machine is what an instance's machine is to be. Its JSON is the contract of Command: docs/fleet.md.
type Machine struct {
	InstanceID   string            `json:"instanceId"`
	InstanceType string            `json:"instanceType"`
	ImageID      string            `json:"imageId,omitempty"`
	Zone         string            `json:"availabilityZone,omitempty"`
	Group        string            `json:"autoScalingGroupName,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
	UserData     string            `json:"userData,omitempty"` // base64, as it was given
	// What the user data says to the agent.
	Cluster    string            `json:"cluster"`
	Attributes map[string]string `json:"attributes,omitempty"`
	// Where the agent finds the control plane.
	Endpoint string `json:"endpoint"`
	Region   string `json:"region"`
}

// ErrCapacity says that there is no machine for an instance at the moment. It is EC2's error code.
var ErrCapacity = errors.New("InsufficientInstanceCapacity")

// setting is a line of /etc/ecs/ecs.config, as user data writes it: with echo, or in a here-document.
var setting = regexp.MustCompile(`\b(ECS_[A-Z_]+)=('[^']*'|"(?:[^"\\]|\\.)*"|\{[^}\n]*\}|[^\s;>"'|&]*)`)

// Configure reads what the user data says to the agent: the cluster, default where it names none, and attributes.
// See https://docs.aws.amazon.com/AmazonECS/latest/developerguide/bootstrap_container_instance.html
func (m *Machine) Configure() {
	m.Cluster = "default"
	script, err := base64.StdEncoding.DecodeString(m.UserData)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(script)) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, s := range setting.FindAllStringSubmatch(line, -1) {
			value := strings.Trim(s[2], `'"`)
			switch {
			case s[1] == "ECS_CLUSTER" && value != "":
				m.Cluster = value
			case s[1] == "ECS_INSTANCE_ATTRIBUTES":
				attributes := map[string]string{}
				if json.Unmarshal([]byte(strings.ReplaceAll(value, `\"`, `"`)), &attributes) == nil {
					m.Attributes = attributes
				}
			}
		}
	}
}
