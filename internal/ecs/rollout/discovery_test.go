package rollout

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	discovery "github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/state"
)

// discoverable makes a service of Cloud Map, and gives the nodes addresses.
func (w *world) discoverable() {
	w.t.Helper()
	w.update(func(tx *state.Tx) {
		tx.Namespaces.Put(&state.Namespace{ID: "ns-1", Name: "corp.local", Type: discovery.NamespaceTypeDnsPrivate})
		tx.DiscoveryServices.Put(&state.DiscoveryService{
			ID:           "srv-1",
			Name:         "web",
			NamespaceID:  "ns-1",
			DNS:          &discovery.DnsConfig{DnsRecords: []discovery.DnsRecord{{Type: "SRV", TTL: new(int64(10))}}},
			CustomHealth: &discovery.HealthCheckCustomConfig{},
		})
		for _, c := range slices.Collect(tx.ContainerInstances.All()) {
			row := *c
			row.Ec2InstanceId = new("i-1")
			row.PrivateIPAddress = "192.0.2.1"
			tx.ContainerInstances.Put(&row)
		}
	})
}

// discovered has a service registered in Cloud Map.
func discovered(in *awsecs.CreateServiceInput) {
	in.ServiceRegistries = []types.ServiceRegistry{{
		RegistryArn:   aws.String("arn:aws:servicediscovery:us-east-1:000000000000:service/srv-1"),
		ContainerName: aws.String("main"),
		ContainerPort: aws.Int32(80),
	}}
}

// instances returns the instances of Cloud Map's service.
func (w *world) instances() []*state.DiscoveryInstance {
	return slices.Collect(w.store.View().InstancesOf("srv-1"))
}

// TestRegisteredInCloudMap: a task is an instance from the moment at which it runs until the moment at which it's to stop.
func TestRegisteredInCloudMap(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.discoverable()
		w.define("v1", withPort)
		w.create(2, discovered)
		w.after(starting / 2)
		if n := len(w.instances()); n != 0 {
			t.Errorf("%d instances before a task runs", n)
		}
		expect(t, w.after(time.Hour), 2, 0, 1, completed)
		all := w.instances()
		if len(all) != 2 {
			t.Fatalf("%d instances", len(all))
		}
		task := w.store.View().Tasks.Get(all[0].Task)
		want := map[string]string{
			"AWS_INSTANCE_IPV4":          "192.0.2.1",
			"AWS_INSTANCE_PORT":          all[0].Attributes["AWS_INSTANCE_PORT"],
			"AWS_INIT_HEALTH_STATUS":     "HEALTHY",
			"REGION":                     "us-east-1",
			"ECS_CLUSTER_NAME":           "default",
			"ECS_SERVICE_NAME":           "s",
			"ECS_TASK_DEFINITION_FAMILY": "f",
			"EC2_INSTANCE_ID":            "i-1",
		}
		if zone := aws.ToString(task.AvailabilityZone); zone != "" {
			want["AVAILABILITY_ZONE"] = zone
		}
		if !maps.Equal(all[0].Attributes, want) || want["AWS_INSTANCE_PORT"] == "" || all[0].ID != state.NameOf(*task.TaskArn) {
			t.Errorf("%+v", all[0])
		}
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(1)})
		w.after(stopping / 2) // it hasn't stopped yet
		if n := len(w.instances()); n != 1 || len(w.tasks()) != 1 {
			t.Errorf("%d instances of %d tasks while one stops", n, len(w.tasks()))
		}
		revision := w.store.View().DiscoveryServices.Get("srv-1").Revision
		w.update(func(tx *state.Tx) { tx.DeleteInstance(w.instances()[0]) })
		w.after(time.Hour)
		if n := len(w.instances()); n != 0 || w.store.View().DiscoveryServices.Get("srv-1").Revision != revision+1 {
			t.Errorf("%d instances after somebody deregistered the last one", n)
		}
	})
}

// TestLostTasksAreDeregistered: whoever marks a task stopped deregisters it.
func TestLostTasksAreDeregistered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.discoverable()
		w.define("v1", withPort)
		w.create(1, discovered)
		w.after(time.Minute)
		if len(w.instances()) != 1 {
			t.Fatal("no instance")
		}
		first := w.instances()[0].Task
		w.update(func(tx *state.Tx) {
			tx.Tasks.Put(tx.Tasks.Get(first).Stopped(types.TaskStopCodeTerminationNotice, "its node is lost", time.Now()))
		})
		if slices.ContainsFunc(w.instances(), func(i *state.DiscoveryInstance) bool { return i.Task == first }) {
			t.Error("a task that is lost is still there")
		}
	})
}

// TestHealthInCloudMap: a task with health checks is as healthy as they say, and isn't until they have said so.
func TestHealthInCloudMap(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.discoverable()
		w.define("v1", withPort, func(c *types.ContainerDefinition) {
			c.HealthCheck = &types.HealthCheck{Command: []string{"CMD", "true"}}
		})
		w.create(1, discovered)
		w.after(time.Minute)
		for _, c := range []struct {
			health types.HealthStatus
			want   discovery.CustomHealthStatus
		}{
			{types.HealthStatusUnknown, discovery.CustomHealthStatusUnhealthy},
			{types.HealthStatusHealthy, discovery.CustomHealthStatusHealthy},
			{types.HealthStatusUnhealthy, discovery.CustomHealthStatusUnhealthy},
		} {
			var got discovery.CustomHealthStatus
			w.update(func(tx *state.Tx) {
				i := w.instances()[0]
				row := *tx.Tasks.Get(i.Task)
				row.HealthStatus = c.health
				tx.Tasks.Put(&row)
				got = tx.DiscoveryInstances.Get(i.Key()).Health
			})
			if got != c.want {
				t.Errorf("%s: %s", c.health, got)
			}
		}
	})
}

// TestRefusedRegistries: a registry that can't tell where tasks are is refused by name.
func TestRefusedRegistries(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.discoverable()
		w.define("v1", withPort)
		for name, change := range map[string]func(*types.ServiceRegistry){
			"no such service":    func(r *types.ServiceRegistry) { r.RegistryArn = aws.String(*r.RegistryArn + "0") },
			"no port":            func(r *types.ServiceRegistry) { r.ContainerName, r.ContainerPort = nil, nil },
			"half a port":        func(r *types.ServiceRegistry) { r.ContainerPort = nil },
			"two ports":          func(r *types.ServiceRegistry) { r.Port = aws.Int32(80) },
			"no such container":  func(r *types.ServiceRegistry) { r.ContainerName = aws.String("other") },
			"no such port of it": func(r *types.ServiceRegistry) { r.ContainerPort = aws.Int32(81) },
		} {
			in := &awsecs.CreateServiceInput{ServiceName: aws.String("s"), TaskDefinition: aws.String("f"), DesiredCount: aws.Int32(0)}
			discovered(in)
			change(&in.ServiceRegistries[0])
			if _, err := w.ecs.CreateService(w.ctx, in); err == nil {
				t.Errorf("%s isn't refused", name)
			}
		}
	})
}
