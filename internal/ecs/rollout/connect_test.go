package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// connected has a service with an endpoint, reached as www:80.
func connected(in *awsecs.CreateServiceInput) {
	in.ServiceConnectConfiguration = endpoint("http", 80)
}

func endpoint(discovery string, port int32) *types.ServiceConnectConfiguration {
	return &types.ServiceConnectConfiguration{Enabled: true, Namespace: aws.String("corp"), Services: []types.ServiceConnectService{{
		PortName:      aws.String("http"),
		DiscoveryName: &discovery,
		ClientAliases: []types.ServiceConnectClientAlias{{DnsName: aws.String("www"), Port: &port}},
	}}}
}

// namedPort gives a container a port that Service Connect knows.
func namedPort(c *types.ContainerDefinition) {
	c.PortMappings = []types.PortMapping{{Name: aws.String("http"), ContainerPort: aws.Int32(80)}}
}

// connects has nodes whose agents have the proxy, with addresses.
func (w *world) connects(nodes int) {
	w.t.Helper()
	w.cluster(0)
	for i := range nodes {
		arn := w.node(types.Attribute{Name: aws.String("pintle.service-connect")})
		w.update(func(tx *state.Tx) {
			row := *tx.ContainerInstances.Get(arn)
			row.PrivateIPAddress = "192.0.2." + string(rune('1'+i))
			tx.ContainerInstances.Put(&row)
		})
	}
	_, err := w.ecs.CreateCluster(w.ctx, &awsecs.CreateClusterInput{
		ClusterName:            aws.String("other"),
		ServiceConnectDefaults: &types.ClusterServiceConnectDefaultsRequest{Namespace: aws.String("corp")},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// endpointsNow returns Cloud Map's services by name, with the number of their instances.
func (w *world) endpointsNow() map[string]int {
	v := w.store.View()
	out := map[string]int{}
	for s := range v.DiscoveryServices.All() {
		out[s.Name] = len(slices.Collect(v.InstancesOf(s.ID)))
	}
	return out
}

// TestTasksAtEndpoints: tasks are at their endpoint as long as they run and are to run; an endpoint goes with its last deployment.
func TestTasksAtEndpoints(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.connects(2)
		w.define("v1", namedPort)
		w.create(2, connected)
		expect(t, w.after(time.Hour), 2, 0, 1, completed)
		if got := w.endpointsNow(); len(got) != 1 || got["http"] != 2 {
			t.Fatal(got)
		}
		w.change(&awsecs.UpdateServiceInput{ServiceConnectConfiguration: endpoint("web", 81)})
		if got := w.endpointsNow(); len(got) != 2 || got["http"] != 2 {
			t.Errorf("while the new deployment begins: %v", got)
		}
		expect(t, w.after(time.Hour), 2, 0, 1, completed)
		if got := w.endpointsNow(); len(got) != 1 || got["web"] != 2 {
			t.Errorf("after it: %v", got)
		}
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(1)})
		w.after(stopping / 2) // it hasn't stopped yet
		if got := w.endpointsNow(); got["web"] != 1 {
			t.Errorf("while one stops: %v", got)
		}
		if _, err := w.ecs.DeleteService(w.ctx, &awsecs.DeleteServiceInput{Service: aws.String("s"), Force: aws.Bool(true)}); err != nil {
			t.Fatal(err)
		}
		w.after(time.Hour)
		if got := w.endpointsNow(); len(got) != 0 {
			t.Errorf("after the service's end: %v", got)
		}
	})
}

// TestProxyLogsNeedADriver: tasks go where their proxies' log driver is.
func TestProxyLogsNeedADriver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.connects(1)
		w.define("v1", namedPort)
		w.create(1, connected, func(in *awsecs.CreateServiceInput) {
			in.ServiceConnectConfiguration.LogConfiguration = &types.LogConfiguration{
				LogDriver: types.LogDriverAwslogs,
				Options:   map[string]string{"awslogs-group": "/mesh"},
			}
		})
		expect(t, w.after(time.Minute), 0, 0, 1, inProgress)
		w.node(
			types.Attribute{Name: aws.String("pintle.service-connect")},
			types.Attribute{Name: aws.String("com.amazonaws.ecs.capability.logging-driver.awslogs")},
		)
		expect(t, w.after(time.Hour), 1, 0, 1, completed)
	})
}

// TestRollBackOfEndpoints: a deployment that fails leaves what clients are told as it was.
func TestRollBackOfEndpoints(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.connects(1)
		w.define("v1", namedPort)
		w.create(1, connected, func(in *awsecs.CreateServiceInput) {
			in.DeploymentConfiguration = &types.DeploymentConfiguration{
				DeploymentCircuitBreaker: &types.DeploymentCircuitBreaker{Enable: true, Rollback: true},
			}
		})
		w.after(time.Hour)
		w.define("broken", namedPort)
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f"), ServiceConnectConfiguration: endpoint("http", 81)})
		w.after(5 * time.Hour)
		for s := range w.store.View().DiscoveryServices.All() {
			if s.Endpoint.Aliases[0].Port != 80 {
				t.Errorf("%+v", s.Endpoint)
			}
		}
		if got := w.endpointsNow(); len(got) != 1 || got["http"] != 1 {
			t.Error(got)
		}
	})
}

// TestNodesWithoutAProxy get no task of Service Connect, and the service says what they miss.
func TestNodesWithoutAProxy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.connects(0)
		w.node()
		w.define("v1", namedPort)
		w.create(1, connected)
		s := w.after(time.Minute)
		if s.RunningCount != 0 || !slices.ContainsFunc(events(s), func(e string) bool { return strings.Contains(e, "pintle.service-connect") }) {
			t.Errorf("%d running, %v", s.RunningCount, events(s))
		}
	})
}
