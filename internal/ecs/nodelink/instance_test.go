package nodelink

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2 "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// launched makes the world's container instance an EC2 instance with a profile.
func launched(w *world) {
	w.update(func(tx *state.Tx) {
		machine := instanceRow()
		machine.Ec2InstanceId = aws.String("i-1")
		tx.ContainerInstances.Put(machine)
		tx.Instances.Put(&state.Instance{Profile: "workers", UserData: "IyE=", Instance: ec2.Instance{
			InstanceId: aws.String("i-1"), PrivateIpAddress: aws.String("172.31.0.4"), InstanceType: "p3.2xlarge",
			Placement: &ec2.Placement{AvailabilityZone: aws.String("us-east-1b")},
			State:     &ec2.InstanceState{Name: ec2.InstanceStateNameRunning},
			Tags:      []ec2.Tag{{Key: aws.String("Name"), Value: aws.String("one")}, {Key: aws.String("a/b"), Value: aws.String("two")}},
			MetadataOptions: &ec2.InstanceMetadataOptionsResponse{
				HttpTokens: ec2.HttpTokensStateRequired, HttpPutResponseHopLimit: aws.Int32(3),
				InstanceMetadataTags: ec2.InstanceMetadataTagsStateEnabled,
			},
		}})
		tx.InstanceProfiles.Put(&state.InstanceProfile{Name: "workers", Path: "/", ID: "AIPA1", Role: "worker"})
		tx.Roles.Put(&state.Role{Identity: state.Identity{Name: "worker", Path: "/", ID: "AROA1"}})
	})
}

func roleOptions(issued *int, lifetime time.Duration) Options {
	return Options{
		Account: account.New("000000000000", "us-east-1", time.Now),
		Instance: func(instance, role, id string) *acs.IAMRoleCredentials {
			*issued++
			return &acs.IAMRoleCredentials{
				AccessKeyID: instance + " " + role + " " + id, Expiration: time.Now().Add(lifetime).UTC().Format(time.RFC3339),
			}
		},
	}
}

// TestInstanceMetadata: a node is told of its machine before its tasks, and again when something changes.
func TestInstanceMetadata(t *testing.T) {
	issued := 0
	w := newWorld(t, newJournal(), roleOptions(&issued, time.Hour))
	launched(w)
	w.put(taskRow("one", "RUNNING", "PENDING"))
	a, _ := w.connectACS()
	m := next[*acs.PintleInstance](a)
	if m.InstanceID != "i-1" || m.Zone != "us-east-1b" || m.Hostname != "ip-172-31-0-4.ec2.internal" || !m.TokensRequired || m.HopLimit != 3 ||
		m.UserData != "IyE=" || len(m.Tags) != 1 || m.Tags["Name"] != "one" {
		t.Errorf("got %+v", m)
	}
	p := m.Profile
	if p == nil || p.Arn != "arn:aws:iam::000000000000:instance-profile/workers" || p.ID != "AIPA1" || p.Role != "worker" ||
		p.Credentials == nil || p.Credentials.AccessKeyID != "i-1 arn:aws:iam::000000000000:role/worker AROA1" {
		t.Errorf("got %+v", p)
	}
	next[*acs.PayloadMessage](a)
	w.update(func(tx *state.Tx) {
		tx.InstanceProfiles.Put(&state.InstanceProfile{Name: "workers", Path: "/", ID: "AIPA1"})
	})
	if m := next[*acs.PintleInstance](a); m.Profile == nil || m.Profile.Credentials != nil || issued != 1 {
		t.Errorf("without a role: %+v, issued %d", m.Profile, issued)
	}
}

// TestInstanceCredentials: an instance that isn't a node yet gets the credentials of its role, unless it has none, or is over.
func TestInstanceCredentials(t *testing.T) {
	issued := 0
	w := newWorld(t, newJournal(), roleOptions(&issued, time.Hour))
	launched(w)
	if c := w.link.InstanceCredentials("i-1"); c == nil || c.AccessKeyID != "i-1 arn:aws:iam::000000000000:role/worker AROA1" {
		t.Errorf("got %+v", c)
	}
	if c := w.link.InstanceCredentials("i-2"); c != nil {
		t.Errorf("one that isn't there got %+v", c)
	}
	w.update(func(tx *state.Tx) {
		over := *tx.Instances.Get("i-1")
		over.State = &ec2.InstanceState{Name: ec2.InstanceStateNameTerminated}
		tx.Instances.Put(&over)
	})
	if c := w.link.InstanceCredentials("i-1"); c != nil {
		t.Errorf("one that is over got %+v", c)
	}
	w.update(func(tx *state.Tx) {
		back := *tx.Instances.Get("i-1")
		back.State = &ec2.InstanceState{Name: ec2.InstanceStateNameRunning}
		tx.Instances.Put(&back)
		tx.InstanceProfiles.Put(&state.InstanceProfile{Name: "workers", Path: "/", ID: "AIPA1"})
	})
	if c := w.link.InstanceCredentials("i-1"); c != nil || issued != 1 {
		t.Errorf("without a role: %+v, issued %d", c, issued)
	}
}

// TestInstanceOfANodesOwnKey: a node with a key of its own says itself which instance it is, so it's told neither the credentials nor the user
// data of that one.
func TestInstanceOfANodesOwnKey(t *testing.T) {
	issued := 0
	o := roleOptions(&issued, time.Hour)
	o.Verify = func(context.Context, string, string, string, string, http.Header, []byte) (call.Identity, error) {
		return call.Identity{Node: true, Instance: instanceArn}, nil
	}
	w := newWorld(t, newJournal(), o)
	launched(w)
	w.put(taskRow("one", "RUNNING", "PENDING"))
	a, _ := w.connectACS()
	next[*acs.PayloadMessage](a) // fails if another message comes first
	if issued != 0 {
		t.Errorf("issued %d", issued)
	}
}
