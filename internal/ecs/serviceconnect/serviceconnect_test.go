package serviceconnect

import (
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"pgregory.net/rapid"
)

// definition has ports named http, at 80, plain, at 6379, and udp, at 53.
func definition(mode types.NetworkMode) *types.TaskDefinition {
	port := func(name string, number int32, app types.ApplicationProtocol, protocol types.TransportProtocol) types.PortMapping {
		return types.PortMapping{Name: &name, ContainerPort: &number, AppProtocol: app, Protocol: protocol}
	}
	return &types.TaskDefinition{NetworkMode: mode, ContainerDefinitions: []types.ContainerDefinition{
		{Name: aws.String("side")},
		{Name: aws.String("main"), PortMappings: []types.PortMapping{
			port("http", 80, types.ApplicationProtocolHttp, types.TransportProtocolTcp),
			port("plain", 6379, "", types.TransportProtocolTcp),
			port("udp", 53, "", types.TransportProtocolUdp),
		}},
	}}
}

func named(port string, change ...func(*types.ServiceConnectService)) *types.ServiceConnectConfiguration {
	s := types.ServiceConnectService{PortName: &port}
	for _, f := range change {
		f(&s)
	}
	return &types.ServiceConnectConfiguration{Enabled: true, Services: []types.ServiceConnectService{s}}
}

func alias(name string, port int32) func(*types.ServiceConnectService) {
	return func(s *types.ServiceConnectService) {
		a := types.ServiceConnectClientAlias{Port: &port}
		if name != "" {
			a.DnsName = &name
		}
		s.ClientAliases = append(s.ClientAliases, a)
	}
}

func discovery(name string) func(*types.ServiceConnectService) {
	return func(s *types.ServiceConnectService) { s.DiscoveryName = &name }
}

func ingress(port int32) func(*types.ServiceConnectService) {
	return func(s *types.ServiceConnectService) { s.IngressPortOverride = &port }
}

func timeout(idle, request *int32) func(*types.ServiceConnectService) {
	return func(s *types.ServiceConnectService) {
		s.Timeout = &types.TimeoutConfiguration{IdleTimeoutSeconds: idle, PerRequestTimeoutSeconds: request}
	}
}

func TestEndpoints(t *testing.T) {
	for name, c := range map[string]struct {
		in   *types.ServiceConnectConfiguration
		want []Endpoint
	}{
		"off":         {&types.ServiceConnectConfiguration{Services: named("http").Services}, nil},
		"none":        {nil, nil},
		"client only": {&types.ServiceConnectConfiguration{Enabled: true}, nil},
		"defaults": {named("http"), []Endpoint{{
			Discovery: "http", Container: "main", Port: 80, Protocol: "http", Alias: Alias{"http.corp", 80},
		}}},
		"the discovery name is in the default alias": {named("http", discovery("web"), alias("", 8080)), []Endpoint{{
			Discovery: "web", Container: "main", Port: 80, Protocol: "http", Alias: Alias{"web.corp", 8080},
		}}},
		"all": {named("http", alias("www", 81), ingress(15000), timeout(new(int32(0)), new(int32(7)))), []Endpoint{{
			Discovery: "http", Container: "main", Port: 80, Protocol: "http", Alias: Alias{"www", 81},
			Ingress: 15000, Idle: new(int32(0)), Request: new(int32(7)),
		}}},
		"tcp": {named("plain", alias("redis", 6379)), []Endpoint{{Discovery: "plain", Container: "main", Port: 6379, Alias: Alias{"redis", 6379}}}},
	} {
		if err := Check(c.in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, err := Resolve(c.in, definition(types.NetworkModeAwsvpc), "corp")
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestRefusedWithoutADefinition(t *testing.T) {
	twice := named("http")
	twice.Services = append(twice.Services, twice.Services...)
	sameName := named("http", discovery("plain"))
	sameName.Services = append(sameName.Services, named("plain").Services...)
	sameAlias := named("http", alias("a", 80))
	sameAlias.Services = append(sameAlias.Services, named("plain", alias("a", 80)).Services...)
	for name, c := range map[string]struct {
		in   *types.ServiceConnectConfiguration
		want string
	}{
		"no port name":           {named(""), "portName"},
		"a port twice":           {twice, "portName"},
		"a discovery name twice": {sameName, "discoveryName"},
		"an alias twice":         {sameAlias, "clientAliases"},
		"two aliases":            {named("http", alias("a", 80), alias("b", 80)), "clientAliases"},
		"a name in capitals":     {named("http", discovery("Web")), "discoveryName"},
		"a hyphen first":         {named("http", discovery("-web")), "discoveryName"},
		"too long":               {named("http", discovery(strings.Repeat("a", 65))), "discoveryName"},
		"an alias in capitals":   {named("http", alias("WWW", 80)), "dnsName"},
		"an alias with a space":  {named("http", alias("a b", 80)), "dnsName"},
		"port 0":                 {named("http", alias("a", 0)), "clientAliases.port"},
		"a high port":            {named("http", alias("a", 65536)), "clientAliases.port"},
		"ingress 0":              {named("http", ingress(0)), "ingressPortOverride"},
		"a negative time-out":    {named("http", timeout(new(int32(-1)), nil)), "timeout"},
	} {
		if err := Check(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusedWithADefinition(t *testing.T) {
	both := named("http", ingress(15000))
	both.Services = append(both.Services, named("plain", ingress(15000)).Services...)
	for name, c := range map[string]struct {
		in   *types.ServiceConnectConfiguration
		mode types.NetworkMode
		want string
	}{
		"no such port":           {named("other"), types.NetworkModeAwsvpc, "portName"},
		"udp":                    {named("udp"), types.NetworkModeAwsvpc, "UDP"},
		"host":                   {named("http"), types.NetworkModeHost, "networkMode"},
		"a client in host":       {&types.ServiceConnectConfiguration{Enabled: true}, types.NetworkModeHost, "networkMode"},
		"none":                   {named("http"), types.NetworkModeNone, "networkMode"},
		"ingress in bridge":      {named("http", ingress(15000)), "", "ingressPortOverride"},
		"ingress is taken":       {named("http", ingress(6379)), types.NetworkModeAwsvpc, "ingressPortOverride"},
		"ingress is taken twice": {both, types.NetworkModeAwsvpc, "ingressPortOverride"},
		"requests over tcp":      {named("plain", timeout(nil, new(int32(1)))), types.NetworkModeAwsvpc, "perRequestTimeoutSeconds"},
	} {
		if _, err := Resolve(c.in, definition(c.mode), "corp"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatPassesIsWellFormed: whatever a caller sends, an endpoint has names that DNS and Cloud Map can have, and ports.
func TestWhatPassesIsWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &types.ServiceConnectConfiguration{Enabled: true}
		for range rapid.IntRange(1, 3).Draw(t, "services") {
			s := types.ServiceConnectService{PortName: aws.String(rapid.SampledFrom([]string{"http", "plain", "udp", "", "x"}).Draw(t, "port"))}
			if rapid.Bool().Draw(t, "has a name") {
				s.DiscoveryName = aws.String(rapid.StringMatching(`[a-zA-Z0-9_.-]{0,66}`).Draw(t, "name"))
			}
			for range rapid.IntRange(0, 2).Draw(t, "aliases") {
				s.ClientAliases = append(s.ClientAliases, types.ServiceConnectClientAlias{
					DnsName: aws.String(rapid.StringMatching(`[a-zA-Z0-9_. -]{0,130}`).Draw(t, "alias")),
					Port:    aws.Int32(rapid.Int32Range(-1, 65537).Draw(t, "alias port")),
				})
			}
			c.Services = append(c.Services, s)
		}
		if Check(c) != nil {
			return
		}
		all, err := Resolve(c, definition(types.NetworkModeBridge), "corp")
		if err != nil {
			return
		}
		names, ports := map[string]bool{}, map[int32]bool{}
		for _, e := range all {
			if names[e.Discovery] || ports[e.Port] || !discoveryName.MatchString(e.Discovery) || e.Alias.Name == "" || len(e.Alias.Name) > 127 ||
				strings.ToLower(e.Alias.Name) != e.Alias.Name || e.Alias.Port < 1 || e.Alias.Port > 65535 {
				t.Errorf("%+v", e)
			}
			names[e.Discovery], ports[e.Port] = true, true
		}
		if len(all) != len(c.Services) {
			t.Errorf("%d endpoints of %d services", len(all), len(c.Services))
		}
	})
}
