package ecs

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	discovery "github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/state"
)

// newConnected returns ECS with a default namespace for its cluster, and the family "web" with a named port.
func newConnected(t *testing.T) (*Service, *state.Store) {
	t.Helper()
	s, store := newTestService(t)
	_, err := s.UpdateCluster(t.Context(), &ecs.UpdateClusterInput{
		Cluster: aws.String("default"), ServiceConnectDefaults: &types.ClusterServiceConnectDefaultsRequest{Namespace: aws.String("corp")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defineWeb(t, s, types.ApplicationProtocolHttp)
	return s, store
}

func defineWeb(t *testing.T, s *Service, protocol types.ApplicationProtocol) {
	t.Helper()
	_, err := s.RegisterTaskDefinition(t.Context(), &ecs.RegisterTaskDefinitionInput{
		Family: aws.String("web"), ContainerDefinitions: []types.ContainerDefinition{{
			Name: aws.String("main"), Image: aws.String("i"), Memory: aws.Int32(4),
			PortMappings: []types.PortMapping{{Name: aws.String("http"), ContainerPort: aws.Int32(80), AppProtocol: protocol}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// web returns a service with the endpoint www:80.
func web(name string) *ecs.CreateServiceInput {
	return &ecs.CreateServiceInput{
		ServiceName: &name, TaskDefinition: aws.String("web"), DesiredCount: aws.Int32(0),
		ServiceConnectConfiguration: &types.ServiceConnectConfiguration{Enabled: true, Services: []types.ServiceConnectService{{
			PortName:      aws.String("http"),
			ClientAliases: []types.ServiceConnectClientAlias{{DnsName: aws.String("www"), Port: aws.Int32(80)}},
		}}},
	}
}

func namespaces(v *state.View) (names []string) {
	for n := range v.Namespaces.All() {
		names = append(names, n.Name+" "+string(n.Type))
	}
	return names
}

// TestServiceConnectDefaults: a name creates a namespace unless it's there, an ARN must be one's, and an empty name removes the default.
func TestServiceConnectDefaults(t *testing.T) {
	s, store := newConnected(t)
	c := store.View().Clusters.Get(s.clusterArn(nil))
	first := *c.ServiceConnectDefaults.Namespace
	if !strings.Contains(first, ":namespace/ns-") || strings.Join(namespaces(store.View()), ",") != "corp HTTP" {
		t.Fatalf("%s, %v", first, namespaces(store.View()))
	}
	other := &types.ClusterServiceConnectDefaultsRequest{Namespace: aws.String("corp")}
	if _, err := s.CreateCluster(t.Context(), &ecs.CreateClusterInput{ClusterName: aws.String("other"), ServiceConnectDefaults: other}); err != nil {
		t.Fatal(err)
	}
	if got := *store.View().Clusters.Get(s.clusterArn(aws.String("other"))).ServiceConnectDefaults.Namespace; got != first {
		t.Errorf("another namespace of the same name: %s", got)
	}
	for _, bad := range []string{"a b", "a/b", "a<b", first + "x"} {
		_, err := s.UpdateCluster(t.Context(), &ecs.UpdateClusterInput{
			Cluster: aws.String("default"), ServiceConnectDefaults: &types.ClusterServiceConnectDefaultsRequest{Namespace: &bad},
		})
		if err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	none := &types.ClusterServiceConnectDefaultsRequest{Namespace: aws.String("")}
	out, err := s.UpdateCluster(t.Context(), &ecs.UpdateClusterInput{Cluster: aws.String("other"), ServiceConnectDefaults: none})
	if err != nil || out.Cluster.ServiceConnectDefaults != nil || len(namespaces(store.View())) != 1 {
		t.Errorf("%v, %v, %v", out, err, namespaces(store.View()))
	}
}

// TestEndpointsInCloudMap: an endpoint is a service of Cloud Map, which the deployment shows, and which its next deployment keeps.
func TestEndpointsInCloudMap(t *testing.T) {
	s, store := newConnected(t)
	out, err := s.CreateService(t.Context(), web("a"))
	if err != nil {
		t.Fatal(err)
	}
	d := out.Service.Deployments[0]
	v := store.View()
	row := v.DiscoveryServices.Get(state.NameOf(*d.ServiceConnectResources[0].DiscoveryArn))
	if len(d.ServiceConnectResources) != 1 || *d.ServiceConnectResources[0].DiscoveryName != "http" || row == nil || row.DNS != nil ||
		row.Endpoint.Owner != *out.Service.ServiceArn || row.Endpoint.Aliases[0] != (state.EndpointAlias{Name: "www", Port: 80}) ||
		row.Endpoint.Protocol != types.ApplicationProtocolHttp {
		t.Fatalf("%+v, %+v", d, row)
	}
	if got := *d.ServiceConnectConfiguration.Namespace; got != *v.Clusters.Get(s.clusterArn(nil)).ServiceConnectDefaults.Namespace {
		t.Errorf("the namespace is %s", got)
	}
	again, err := s.UpdateService(t.Context(), &ecs.UpdateServiceInput{Service: aws.String("a"), ForceNewDeployment: true})
	if err != nil || *again.Service.Deployments[0].ServiceConnectResources[0].DiscoveryArn != row.ARN {
		t.Errorf("%+v, %v", again, err)
	}
	listed, err := s.ListServicesByNamespace(t.Context(), &ecs.ListServicesByNamespaceInput{Namespace: aws.String("corp")})
	if err != nil || len(listed.ServiceArns) != 1 {
		t.Errorf("%+v, %v", listed, err)
	}
}

// TestDeploymentKeepsWhatItReaches: a client sees what was there when its own deployment began, and nothing that came later.
func TestDeploymentKeepsWhatItReaches(t *testing.T) {
	s, store := newConnected(t)
	client := web("client")
	client.ServiceConnectConfiguration.Services = nil
	if _, err := s.CreateService(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateService(t.Context(), web("a")); err != nil {
		t.Fatal(err)
	}
	reaches := func(name string) []string {
		return store.View().Services.Get(inCluster(s.clusterArn(nil), "service", name)).Deployments[0].Connect.Reaches
	}
	if len(reaches("client")) != 0 || len(reaches("a")) != 1 {
		t.Errorf("before: %v, %v", reaches("client"), reaches("a"))
	}
	if _, err := s.UpdateService(t.Context(), &ecs.UpdateServiceInput{Service: aws.String("client"), ForceNewDeployment: true}); err != nil {
		t.Fatal(err)
	}
	if len(reaches("client")) != 1 {
		t.Errorf("after: %v", reaches("client"))
	}
}

// TestServiceConnectRefused: what can't be is refused by name, and changes nothing.
func TestServiceConnectRefused(t *testing.T) {
	s, store := newConnected(t)
	if _, err := s.CreateService(t.Context(), web("a")); err != nil {
		t.Fatal(err)
	}
	first := func(c *types.ServiceConnectConfiguration) *types.ServiceConnectService { return &c.Services[0] }
	for name, c := range map[string]struct {
		change func(*types.ServiceConnectConfiguration)
		want   string
	}{
		"another's discovery name": {func(*types.ServiceConnectConfiguration) {}, "discoveryName"},
		"another's alias":          {func(c *types.ServiceConnectConfiguration) { first(c).DiscoveryName = aws.String("b") }, "clientAliases"},
		"no namespace":             {func(c *types.ServiceConnectConfiguration) { c.Namespace = aws.String("none") }, "NamespaceNotFoundException"},
		"no port":                  {func(c *types.ServiceConnectConfiguration) { first(c).PortName = aws.String("none") }, "portName"},
		"tls":                      {func(c *types.ServiceConnectConfiguration) { first(c).Tls = &types.ServiceConnectTlsConfiguration{} }, "tls"},
		"no log driver":            {logging("", nil), "Invalid setting for serviceConnectConfiguration.logConfiguration"},
		"no log group":             {logging("awslogs", nil), "awslogs-group. There is none for serviceConnectConfiguration.logConfiguration"},
		"a log option":             {logging("awslogs", map[string]string{"awslogs-group": "g", "x": "y"}), "Log driver awslogs disallows options: x"},
		"a log driver of Docker's": {logging("syslog", nil), "serviceConnectConfiguration.logConfiguration.logDriver"},
		"log secrets": {func(c *types.ServiceConnectConfiguration) {
			c.LogConfiguration = &types.LogConfiguration{LogDriver: "json-file", SecretOptions: []types.Secret{{Name: aws.String("tag")}}}
		}, "serviceConnectConfiguration.logConfiguration.secretOptions"},
		"access logs": {func(c *types.ServiceConnectConfiguration) {
			c.AccessLogConfiguration = &types.ServiceConnectAccessLogConfiguration{}
		}, "accessLogConfiguration"},
		"test traffic": {func(c *types.ServiceConnectConfiguration) {
			first(c).ClientAliases[0].TestTrafficRules = &types.ServiceConnectTestTrafficRules{}
		}, "testTrafficRules"},
	} {
		in := web("b")
		c.change(in.ServiceConnectConfiguration)
		if _, err := s.CreateService(t.Context(), in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v := store.View(); v.DiscoveryServices.Len() != 1 || v.Services.Len() != 1 {
		t.Errorf("%d services of Cloud Map, %d of ECS", v.DiscoveryServices.Len(), v.Services.Len())
	}
	defineWeb(t, s, types.ApplicationProtocolGrpc)
	_, err := s.UpdateService(t.Context(), &ecs.UpdateServiceInput{Service: aws.String("a"), TaskDefinition: aws.String("web")})
	if err == nil || !strings.Contains(err.Error(), "appProtocol") {
		t.Errorf("another protocol: %v", err)
	}
}

func logging(driver types.LogDriver, options map[string]string) func(*types.ServiceConnectConfiguration) {
	return func(c *types.ServiceConnectConfiguration) {
		c.LogConfiguration = &types.LogConfiguration{LogDriver: driver, Options: options}
	}
}

// TestProxyLogs: a deployment keeps where its proxies log, and what instances need for that, as for a container.
func TestProxyLogs(t *testing.T) {
	s, store := newConnected(t)
	in := web("a")
	logging("awslogs", map[string]string{"awslogs-group": "/mesh", "awslogs-stream-prefix": "proxy"})(in.ServiceConnectConfiguration)
	out, err := s.CreateService(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if shown := out.Service.Deployments[0].ServiceConnectConfiguration.LogConfiguration; shown == nil || shown.Options["awslogs-group"] != "/mesh" {
		t.Errorf("shown: %+v", shown)
	}
	connect := func() *state.TaskConnect {
		return store.View().Services.Get(*out.Service.ServiceArn).Deployments[0].Connect
	}
	const driver = "com.amazonaws.ecs.capability.logging-driver.awslogs"
	if c := connect(); c.Log.LogDriver != "awslogs" || strings.Join(c.Attributes, " ") != driver {
		t.Errorf("%+v", c)
	}
	_, err = s.RegisterTaskDefinition(t.Context(), &ecs.RegisterTaskDefinitionInput{
		Family: aws.String("web"), ExecutionRoleArn: aws.String("arn:aws:iam::000000000000:role/r"), ContainerDefinitions: []types.ContainerDefinition{{
			Name: aws.String("main"), Image: aws.String("i"), Memory: aws.Int32(4),
			PortMappings: []types.PortMapping{{Name: aws.String("http"), ContainerPort: aws.Int32(80), AppProtocol: types.ApplicationProtocolHttp}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.UpdateService(t.Context(), &ecs.UpdateServiceInput{Service: aws.String("a"), TaskDefinition: aws.String("web")}); err != nil {
		t.Fatal(err)
	}
	if c := connect(); strings.Join(c.Attributes, " ") != driver+" ecs.capability.execution-role-awslogs" {
		t.Errorf("with an execution role: %+v", c)
	}
}

// TestForeignService: what a user has made in Cloud Map isn't taken over.
func TestForeignService(t *testing.T) {
	s, store := newConnected(t)
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		n := tx.NamespaceNamed("corp")
		tx.DiscoveryServices.Put(&state.DiscoveryService{ID: "srv-1", Name: "HTTP", NamespaceID: n.ID, CustomHealth: &discovery.HealthCheckCustomConfig{}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateService(t.Context(), web("a")); err == nil || !strings.Contains(err.Error(), "discoveryName") {
		t.Error(err)
	}
}

// TestPortNames: Service Connect finds a port by its name.
func TestPortNames(t *testing.T) {
	s, _ := newTestService(t)
	for name, ports := range map[string][]types.PortMapping{
		"in capitals":  {{Name: aws.String("Web"), ContainerPort: aws.Int32(80)}},
		"there twice":  {{Name: aws.String("web"), ContainerPort: aws.Int32(80)}, {Name: aws.String("web"), ContainerPort: aws.Int32(81)}},
		"a protocol":   {{AppProtocol: "smtp", ContainerPort: aws.Int32(80)}},
		"http by udp":  {{AppProtocol: "http", Protocol: "udp", ContainerPort: aws.Int32(80)}},
		"a long name":  {{Name: aws.String(strings.Repeat("a", 65)), ContainerPort: aws.Int32(80)}},
		"a hyphen":     {{Name: aws.String("-a"), ContainerPort: aws.Int32(80)}},
		"an empty one": {{Name: aws.String(""), ContainerPort: aws.Int32(80)}},
	} {
		_, err := s.RegisterTaskDefinition(t.Context(), &ecs.RegisterTaskDefinitionInput{
			Family: aws.String("bad"), ContainerDefinitions: []types.ContainerDefinition{{
				Name: aws.String("main"), Image: aws.String("i"), Memory: aws.Int32(4), PortMappings: ports,
			}},
		})
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
