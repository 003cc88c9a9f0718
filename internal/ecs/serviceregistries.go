package ecs

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	discovery "github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/state"
)

// Where a service's tasks are registered in Cloud Map: "Use service discovery to connect Amazon ECS services with DNS names".

// checkRegistries checks service registries without looking at the store.
func checkRegistries(all []types.ServiceRegistry) error {
	if len(all) > 1 {
		return invalidParameter("serviceRegistries can have at most 1 item.")
	}
	for _, r := range all {
		switch {
		case aws.ToString(r.RegistryArn) == "":
			return invalidParameter("serviceRegistries.registryArn must not be empty.")
		case (aws.ToString(r.ContainerName) == "") != (r.ContainerPort == nil):
			return invalidParameter("serviceRegistries.containerName and containerPort must be given together.")
		case r.Port != nil && r.ContainerPort != nil:
			return invalidParameter("serviceRegistries.port must not be given together with containerName and containerPort.")
		case r.Port != nil && (*r.Port < 1 || *r.Port > 65535):
			return invalidParameter("serviceRegistries.port must be between 1 and 65535, not %d.", *r.Port)
		}
	}
	return nil
}

// resolveRegistries checks service registries against a task definition, and against the services of Cloud Map.
func (s *Service) resolveRegistries(v *state.View, td *state.TaskDefinition, all []types.ServiceRegistry) error {
	for _, r := range all {
		id, ok := s.opts.ResourceOf("servicediscovery", "service/", *r.RegistryArn)
		service := v.DiscoveryServices.Get(id)
		if !ok || service == nil {
			return invalidParameter("serviceRegistries.registryArn: there is no service %s in Cloud Map.", *r.RegistryArn)
		}
		if aws.ToString(r.ContainerName) != "" {
			if err := checkContainerPort(td, &types.LoadBalancer{ContainerName: r.ContainerName, ContainerPort: r.ContainerPort}, ""); err != nil {
				return err
			}
		}
		isSRV := hasRecord(service, discovery.RecordTypeSrv)
		switch {
		case td.NetworkMode != types.NetworkModeAwsvpc && r.ContainerPort == nil:
			return invalidParameter("When specifying 'host' or 'bridge' for networkMode, values for 'containerName' and 'containerPort' must be " +
				"specified in serviceRegistries.")
		case td.NetworkMode != types.NetworkModeAwsvpc && hasRecord(service, discovery.RecordTypeA) && !isSRV:
			return invalidParameter("serviceRegistries.registryArn: the service %s has A records, which don't tell the ports of tasks in network mode "+
				"bridge or host. It must have SRV records.", *r.RegistryArn)
		case isSRV && r.ContainerPort == nil && r.Port == nil:
			return invalidParameter("serviceRegistries must have a port, or a containerName and containerPort: the service %s has SRV records.",
				*r.RegistryArn)
		case hasRecord(service, discovery.RecordTypeAaaa) || hasRecord(service, discovery.RecordTypeCname):
			return invalidParameter("serviceRegistries.registryArn: the service %s has AAAA or CNAME records, and tasks have IPv4 addresses.",
				*r.RegistryArn)
		}
	}
	return nil
}

func hasRecord(s *state.DiscoveryService, kind discovery.RecordType) bool {
	return s.DNS != nil && slices.ContainsFunc(s.DNS.DnsRecords, func(r discovery.DnsRecord) bool { return r.Type == kind })
}
