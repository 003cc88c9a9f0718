package ecs

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// definition is an input for RegisterTaskDefinition with one container, changed.
func definition(change func(*ecs.RegisterTaskDefinitionInput)) *ecs.RegisterTaskDefinitionInput {
	in := &ecs.RegisterTaskDefinitionInput{
		Family:               aws.String("d"),
		ContainerDefinitions: []types.ContainerDefinition{{Name: aws.String("main"), Image: aws.String("i"), Memory: aws.Int32(64)}},
	}
	change(in)
	return in
}

// ofContainer changes the container.
func ofContainer(change func(*types.ContainerDefinition)) func(*ecs.RegisterTaskDefinitionInput) {
	return func(in *ecs.RegisterTaskDefinitionInput) { change(&in.ContainerDefinitions[0]) }
}

// withOptions has the container log with a driver's options: names and values.
func withOptions(driver types.LogDriver, options ...string) func(*ecs.RegisterTaskDefinitionInput) {
	l := types.LogConfiguration{LogDriver: driver, Options: map[string]string{}}
	if driver == types.LogDriverAwslogs {
		l.Options["awslogs-group"] = "g"
	}
	for i := 0; i < len(options); i += 2 {
		l.Options[options[i]] = options[i+1]
	}
	return withLogs(l)
}

// TestLogOptions: what the drivers' documentation names is taken.
func TestLogOptions(t *testing.T) {
	for _, c := range []struct {
		driver  types.LogDriver
		options []string
	}{
		{"awslogs", []string{"awslogs-create-group", "true", "awslogs-region", "r", "awslogs-stream-prefix", "p", "mode", "non-blocking"}},
		{"awslogs", []string{"awslogs-datetime-format", "%Y", "max-buffer-size", "25m", "awslogs-endpoint", "http://h"}},
		{"json-file", []string{"max-size", "1m", "max-file", "2", "compress", "true", "max-buffer-size", "1.5 GiB"}},
		{"splunk", []string{"splunk-url", "http://h", "splunk-token", "t", "tag", "x", "mode", "blocking", "max-buffer-size", "4096"}},
		{"awsfirelens", []string{"Name", "cloudwatch", "mode", "any", "log_group_name", "g"}},
	} {
		if err := checkLogOptions(logsOf(definition(withOptions(c.driver, c.options...)))); err != nil {
			t.Errorf("%s with %v: %v", c.driver, c.options, err)
		}
	}
}

func logsOf(in *ecs.RegisterTaskDefinitionInput) *types.LogConfiguration {
	return in.ContainerDefinitions[0].LogConfiguration
}

// inMode changes the container of a task in a network mode.
func inMode(mode types.NetworkMode, change func(*types.ContainerDefinition)) func(*ecs.RegisterTaskDefinitionInput) {
	return both(ofContainer(change), func(in *ecs.RegisterTaskDefinitionInput) { in.NetworkMode = mode })
}

// ofVolume adds a volume.
func ofVolume(v types.Volume) func(*ecs.RegisterTaskDefinitionInput) {
	return func(in *ecs.RegisterTaskDefinitionInput) {
		v.Name = aws.String("v")
		in.Volumes = []types.Volume{v}
	}
}

// dataSet adds a volume that shows what lies in S3, and the role that reads it.
func dataSet(source string, change func(*types.DockerVolumeConfiguration)) func(*ecs.RegisterTaskDefinitionInput) {
	d := &types.DockerVolumeConfiguration{Driver: aws.String("pintle-s3"), DriverOpts: map[string]string{"source": source}}
	change(d)
	return both(
		ofVolume(types.Volume{DockerVolumeConfiguration: d}),
		func(in *ecs.RegisterTaskDefinitionInput) { in.TaskRoleArn = aws.String("reader") },
	)
}

// efs adds a volume of EFS.
func efs(change func(*types.EFSVolumeConfiguration)) func(*ecs.RegisterTaskDefinitionInput) {
	e := &types.EFSVolumeConfiguration{FileSystemId: aws.String("fs-01234567")}
	change(e)
	return ofVolume(types.Volume{EfsVolumeConfiguration: e})
}

func asItIs(*types.DockerVolumeConfiguration) {}

func withLogs(l types.LogConfiguration) func(*ecs.RegisterTaskDefinitionInput) {
	return ofContainer(func(c *types.ContainerDefinition) { c.LogConfiguration = &l })
}

// withFirelens has the container log by FireLens, and adds a container that routes the logs.
func withFirelens(f types.FirelensConfiguration, options map[string]string, user string) func(*ecs.RegisterTaskDefinitionInput) {
	return func(in *ecs.RegisterTaskDefinitionInput) {
		in.ContainerDefinitions[0].LogConfiguration = &types.LogConfiguration{LogDriver: "awsfirelens", Options: options}
		router := types.ContainerDefinition{
			Name:                  aws.String("router"),
			Image:                 aws.String("i"),
			Memory:                aws.Int32(64),
			User:                  &user,
			FirelensConfiguration: &f,
		}
		in.ContainerDefinitions = append(in.ContainerDefinitions, router)
	}
}

func both(changes ...func(*ecs.RegisterTaskDefinitionInput)) func(*ecs.RegisterTaskDefinitionInput) {
	return func(in *ecs.RegisterTaskDefinitionInput) {
		for _, change := range changes {
			change(in)
		}
	}
}

// TestRequiredAttributes: a definition requires of an instance what Amazon's agent registers under the same names.
func TestRequiredAttributes(t *testing.T) {
	const d, e = "com.amazonaws.ecs.capability.", "ecs.capability."
	mode := func(m types.NetworkMode) func(*ecs.RegisterTaskDefinitionInput) {
		return func(in *ecs.RegisterTaskDefinitionInput) { in.NetworkMode = m }
	}
	role := func(in *ecs.RegisterTaskDefinitionInput) {
		in.TaskRoleArn = aws.String("arn:aws:iam::000000000000:role/r")
	}
	executionRole := func(in *ecs.RegisterTaskDefinitionInput) {
		in.ExecutionRoleArn = aws.String("arn:aws:iam::000000000000:role/r")
	}
	awslogs := types.LogConfiguration{LogDriver: "awslogs", Options: map[string]string{"awslogs-group": "g"}}
	asm, ssm := aws.String("arn:aws:secretsmanager:us-east-1:000000000000:secret:s"), aws.String("s")
	for _, c := range []struct {
		name   string
		change func(*ecs.RegisterTaskDefinitionInput)
		want   string
	}{
		{"nothing", both(), ""},
		{"a role", role, d + "task-iam-role"},
		{"a role on the host's network", both(role, mode("host")), d + "task-iam-role " + d + "task-iam-role-network-host"},
		{"awsvpc", mode("awsvpc"), e + "task-eni"},
		{"pidMode", func(in *ecs.RegisterTaskDefinitionInput) { in.PidMode = "task" }, e + "pid-ipc-namespace-sharing"},
		{"ipcMode", func(in *ecs.RegisterTaskDefinitionInput) { in.IpcMode = "host" }, e + "pid-ipc-namespace-sharing"},
		{
			"ephemeral storage",
			func(in *ecs.RegisterTaskDefinitionInput) {
				in.EphemeralStorage = &types.EphemeralStorage{SizeInGiB: 50}
			},
			e + "extensible-ephemeral-storage",
		},
		{
			"App Mesh",
			func(in *ecs.RegisterTaskDefinitionInput) {
				in.ProxyConfiguration = &types.ProxyConfiguration{ContainerName: aws.String("main")}
			},
			e + "aws-appmesh",
		},
		{
			"fault injection",
			func(in *ecs.RegisterTaskDefinitionInput) { in.EnableFaultInjection = aws.Bool(true) },
			e + "fault-injection",
		},
		{"a directory of the host", ofVolume(types.Volume{Host: &types.HostVolumeProperties{SourcePath: aws.String("/d")}}), ""},
		{"Docker's own driver", ofVolume(types.Volume{DockerVolumeConfiguration: &types.DockerVolumeConfiguration{}}), e + "docker-plugin.local"},
		{
			"a driver of volumes",
			ofVolume(types.Volume{DockerVolumeConfiguration: &types.DockerVolumeConfiguration{Driver: aws.String("rexray/ebs:1")}}),
			e + "docker-plugin.rexray/ebs.1",
		},
		{"a data set", dataSet("s3://b/p", asItIs), "com.amazonaws.ecs.capability.task-iam-role " + e + "docker-plugin.pintle-s3"},
		{"EFS", ofVolume(types.Volume{EfsVolumeConfiguration: &types.EFSVolumeConfiguration{FileSystemId: aws.String("fs-01234567")}}), e + "efs"},
		{
			"EFS, encrypted",
			ofVolume(types.Volume{EfsVolumeConfiguration: &types.EFSVolumeConfiguration{
				FileSystemId:      aws.String("fs-01234567"),
				TransitEncryption: types.EFSTransitEncryptionEnabled,
			}}),
			e + "efs " + e + "efsAuth",
		},
		{
			"FSx",
			ofVolume(types.Volume{FsxWindowsFileServerVolumeConfiguration: &types.FSxWindowsFileServerVolumeConfiguration{}}),
			e + "fsxWindowsFileServer",
		},
		{
			"a registry's credentials",
			both(executionRole, ofContainer(func(c *types.ContainerDefinition) {
				c.RepositoryCredentials = &types.RepositoryCredentials{CredentialsParameter: asm}
			})),
			e + "private-registry-authentication.secretsmanager",
		},
		{
			"secrets",
			both(executionRole, ofContainer(func(c *types.ContainerDefinition) {
				c.Secrets = []types.Secret{{Name: aws.String("a"), ValueFrom: asm}, {Name: aws.String("b"), ValueFrom: ssm}}
			})),
			e + "secrets.asm.environment-variables " + e + "secrets.ssm.environment-variables",
		},
		{
			"environment files",
			both(executionRole, ofContainer(func(c *types.ContainerDefinition) {
				c.EnvironmentFiles = []types.EnvironmentFile{{Type: "s3", Value: aws.String("arn:aws:s3:::b/f.env")}}
			})),
			e + "env-files.s3",
		},
		{"privileged", ofContainer(func(c *types.ContainerDefinition) { c.Privileged = aws.Bool(true) }), d + "privileged-container"},
		{
			"a health check",
			ofContainer(func(c *types.ContainerDefinition) {
				c.HealthCheck = &types.HealthCheck{Command: []string{"CMD", "true"}}
			}),
			e + "container-health-check",
		},
		{
			"a restart policy",
			ofContainer(func(c *types.ContainerDefinition) {
				c.RestartPolicy = &types.ContainerRestartPolicy{Enabled: aws.Bool(true)}
			}),
			e + "container-restart-policy",
		},
		{
			"SELinux and AppArmor",
			ofContainer(func(c *types.ContainerDefinition) {
				c.DockerSecurityOptions = []string{"label:type:t", "apparmor:p", "no-new-privileges"}
			}),
			d + "apparmor " + d + "selinux",
		},
		{
			"gMSA",
			ofContainer(func(c *types.ContainerDefinition) { c.CredentialSpecs = []string{"credentialspecdomainless:arn"} }),
			e + "gmsa-domainless",
		},
		{"awslogs", withLogs(awslogs), d + "logging-driver.awslogs"},
		{"awslogs by a role", both(withLogs(awslogs), executionRole), d + "logging-driver.awslogs " + e + "execution-role-awslogs"},
		{
			"a log driver's secrets",
			both(executionRole, withLogs(types.LogConfiguration{
				LogDriver: "splunk", SecretOptions: []types.Secret{{Name: aws.String("a"), ValueFrom: asm}},
			})),
			d + "logging-driver.splunk " + e + "secrets.asm.bootstrap.log-driver",
		},
		{
			"FireLens",
			withFirelens(types.FirelensConfiguration{Type: "fluentbit"}, nil, ""),
			d + "logging-driver.awsfirelens " + e + "firelens.fluentbit",
		},
		{
			"FireLens with all it has",
			withFirelens(types.FirelensConfiguration{
				Type:    "fluentd",
				Options: map[string]string{"config-file-type": "s3", "config-file-value": "arn:aws:s3:::b/k"},
			}, map[string]string{"log-driver-buffer-limit": "1000"}, "1000"),
			d + "logging-driver.awsfirelens " + e + "firelens.fluentd " + e + "firelens.non-root-user " +
				e + "firelens.options.config.s3 " + e + "logging-driver.awsfirelens.log-driver-buffer-limit",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			td, err := newTaskDefinition(definition(c.change))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range td.RequiresAttributes {
				got = append(got, *a.Name)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("requires %s, want %s", strings.Join(got, " "), c.want)
			}
		})
	}
}

// TestEmptyRoles: a role that a form has left empty is none, and isn't told.
func TestEmptyRoles(t *testing.T) {
	td, err := newTaskDefinition(definition(func(in *ecs.RegisterTaskDefinitionInput) {
		in.ExecutionRoleArn, in.TaskRoleArn = aws.String(""), aws.String("")
	}))
	if err != nil || td.ExecutionRoleArn != nil || td.TaskRoleArn != nil {
		t.Errorf("%+v, %v", td, err)
	}
}

func TestRegisterTaskDefinitionRefuses(t *testing.T) {
	s, store := newTestService(t)
	fargate := func(change func(*ecs.RegisterTaskDefinitionInput)) func(*ecs.RegisterTaskDefinitionInput) {
		return func(in *ecs.RegisterTaskDefinitionInput) {
			in.NetworkMode = types.NetworkModeAwsvpc
			in.Cpu = aws.String("256")
			in.Memory = aws.String("512")
			in.RequiresCompatibilities = []types.Compatibility{types.CompatibilityFargate}
			change(in)
		}
	}
	const client = "ClientException"
	for name, c := range map[string]struct {
		change     func(*ecs.RegisterTaskDefinitionInput)
		code, says string
	}{
		"awsfirelens without a router": {
			withLogs(types.LogConfiguration{LogDriver: "awsfirelens"}), client,
			"When awsfirelens log driver is specified in log configuration, a firelens configuration object must be configured in one of the containers.",
		},
		"a router of nobody's logs": {
			ofContainer(func(c *types.ContainerDefinition) {
				c.FirelensConfiguration = &types.FirelensConfiguration{Type: "fluentbit"}
			}), client,
			"When a firelensConfiguration object is specified, at least one container has to be configured with the awsfirelens log driver.",
		},
		"two routers": {
			func(in *ecs.RegisterTaskDefinitionInput) {
				withFirelens(types.FirelensConfiguration{Type: "fluentbit"}, nil, "")(in)
				in.ContainerDefinitions[0].FirelensConfiguration = &types.FirelensConfiguration{Type: "fluentd"}
			},
			client, "main, router",
		},
		"a router of no kind": {withFirelens(types.FirelensConfiguration{Type: "vector"}, nil, ""), client, "vector"},
		"a router's file of no kind": {
			withFirelens(types.FirelensConfiguration{Type: "fluentd", Options: map[string]string{"config-file-type": "ftp"}}, nil, ""),
			client, "config-file-type",
		},
		"a router without its file": {
			withFirelens(types.FirelensConfiguration{Type: "fluentd", Options: map[string]string{"config-file-type": "s3"}}, nil, ""),
			client, "config-file-value",
		},
		"Fargate and pidMode host": {
			fargate(func(in *ecs.RegisterTaskDefinitionInput) { in.PidMode = "host" }), client,
			"Tasks using the Fargate launch type do not support pidMode 'host'. The supported value for pidMode is 'task'.",
		},
		"Fargate and ipcMode": {
			fargate(func(in *ecs.RegisterTaskDefinitionInput) { in.IpcMode = "task" }), client,
			"Tasks using the Fargate launch type do not support ipcMode.",
		},
		"Fargate and a directory of the host": {
			fargate(ofVolume(types.Volume{Host: &types.HostVolumeProperties{SourcePath: aws.String("/d")}})), client,
			"Fargate compatible task definitions do not support sourcePath",
		},
		"Fargate and devices": {
			fargate(ofContainer(func(c *types.ContainerDefinition) {
				c.LinuxParameters = &types.LinuxParameters{Devices: []types.Device{{HostPath: aws.String("/dev/fuse")}}}
			})),
			client, "devices",
		},
		"an unknown architecture": {
			func(in *ecs.RegisterTaskDefinitionInput) {
				in.RuntimePlatform = &types.RuntimePlatform{CpuArchitecture: "RISCV"}
			},
			client, "cpuArchitecture",
		},
		"an unknown system": {
			func(in *ecs.RegisterTaskDefinitionInput) {
				in.RuntimePlatform = &types.RuntimePlatform{OperatingSystemFamily: "BSD"}
			},
			client, "operatingSystemFamily",
		},
		"too little storage": {
			func(in *ecs.RegisterTaskDefinitionInput) {
				in.EphemeralStorage = &types.EphemeralStorage{SizeInGiB: 20}
			},
			client, "between 21 and 200",
		},
		"a family with a blank": {
			func(in *ecs.RegisterTaskDefinitionInput) { in.Family = aws.String("a b") }, client, "Family contains invalid characters.",
		},
		"no containers": {
			func(in *ecs.RegisterTaskDefinitionInput) { in.ContainerDefinitions = nil }, client, "Container list cannot be empty.",
		},
		"a container without a name": {
			ofContainer(func(c *types.ContainerDefinition) { c.Name = nil }), client, "Container.name should not be null or empty.",
		},
		"a container's name with a blank": {
			ofContainer(func(c *types.ContainerDefinition) { c.Name = aws.String("a b") }), client,
			"Container.name contains invalid characters.",
		},
		"a container without an image": {
			ofContainer(func(c *types.ContainerDefinition) { c.Image = nil }), client, "Container.image should not be null or empty.",
		},
		"a restart policy with a short period": {
			ofContainer(func(c *types.ContainerDefinition) {
				c.RestartPolicy = &types.ContainerRestartPolicy{Enabled: aws.Bool(true), RestartAttemptPeriod: aws.Int32(59)}
			}), client, "restartAttemptPeriod must be between 60 and 1800 seconds, not 59.",
		},
		"a restart policy with a long period": {
			ofContainer(func(c *types.ContainerDefinition) {
				c.RestartPolicy = &types.ContainerRestartPolicy{Enabled: aws.Bool(true), RestartAttemptPeriod: aws.Int32(1801)}
			}), client, "restartAttemptPeriod must be between 60 and 1800 seconds, not 1801.",
		},
		"a credential spec that isn't one": {
			ofContainer(func(c *types.ContainerDefinition) { c.CredentialSpecs = []string{"arn:aws:ssm:::parameter/x"} }), client,
			"'credentialSpecs' must begin with credentialspec: or credentialspecdomainless:, not \"arn:aws:ssm:::parameter/x\".",
		},
		"two credential specs": {
			ofContainer(func(c *types.ContainerDefinition) {
				c.CredentialSpecs = []string{"credentialspec:a", "credentialspec:b"}
			}), client,
			"'credentialSpecs' must have at most one member.",
		},
		"Fargate with too little memory": {
			fargate(func(in *ecs.RegisterTaskDefinitionInput) { in.Cpu = aws.String("512") }), client,
			"No Fargate configuration exists for given values: 512 CPU, 512 memory. See the Amazon ECS documentation for the valid values.",
		},
		"Fargate with 1.5 GB for a quarter of a CPU": {
			fargate(func(in *ecs.RegisterTaskDefinitionInput) { in.Memory = aws.String("1536") }), client, "256 CPU, 1536 memory",
		},
		"links in awsvpc": {
			inMode("awsvpc", func(c *types.ContainerDefinition) { c.Links = []string{"b"} }), client,
			"Links are not supported when networkMode=awsvpc.",
		},
		"links in host": {
			inMode("host", func(c *types.ContainerDefinition) { c.Links = []string{"b"} }), client,
			"Links are not supported when networkMode=host.",
		},
		"a hostname in awsvpc": {
			inMode("awsvpc", func(c *types.ContainerDefinition) { c.Hostname = aws.String("h") }), client,
			"hostname is not supported on container when networkMode=awsvpc.",
		},
		"extra hosts in awsvpc": {
			inMode("awsvpc", func(c *types.ContainerDefinition) {
				c.ExtraHosts = []types.HostEntry{{Hostname: aws.String("h"), IpAddress: aws.String("10.0.0.1")}}
			}), client,
			"Extra hosts are not supported on container when networkMode=awsvpc.",
		},
		"DNS servers in awsvpc": {
			inMode("awsvpc", func(c *types.ContainerDefinition) { c.DnsServers = []string{"10.0.0.2"} }), client,
			"DNS servers are not supported on container when networkMode=awsvpc.",
		},
		"DNS search domains in awsvpc": {
			inMode("awsvpc", func(c *types.ContainerDefinition) { c.DnsSearchDomains = []string{"a.example"} }), client,
			"DNS search domains are not supported on container when networkMode=awsvpc.",
		},
		"no network in awsvpc": {
			inMode("awsvpc", func(c *types.ContainerDefinition) { c.DisableNetworking = aws.Bool(true) }), client,
			"Disable Networking is not supported on container when networkMode=awsvpc.",
		},
		"another host port in awsvpc": {
			inMode("awsvpc", func(c *types.ContainerDefinition) {
				c.PortMappings = []types.PortMapping{{ContainerPort: aws.Int32(80), HostPort: aws.Int32(81)}}
			}), client,
			"When networkMode=awsvpc, the host ports and container ports in port mappings must match.",
		},
		"a system control of the host's network": {
			inMode("host", func(c *types.ContainerDefinition) {
				c.SystemControls = []types.SystemControl{{Namespace: aws.String("net.core.somaxconn"), Value: aws.String("1")}}
			}), client,
			"'net.core.somaxconn' is not supported when networkMode=host.",
		},
		"options that awslogs lacks": {
			withOptions("awslogs", "awslogs-bogus", "x", "Awslogs-region", "y"), client,
			"Log driver awslogs disallows options: Awslogs-region, awslogs-bogus",
		},
		"awslogs' group not to be created": {
			withOptions("awslogs", "awslogs-create-group", "false"), client,
			"Log driver awslogs option 'awslogs-create-group' should only be set to 'true', else omit option.",
		},
		"a mode of no kind":       {withOptions("awslogs", "mode", "sometimes"), client, "option 'mode' should be"},
		"a buffer without a size": {withOptions("fluentd", "max-buffer-size", "big"), client, "option 'max-buffer-size' should be"},
		"another driver's option": {
			withOptions("json-file", "awslogs-region", "us-east-1"), client, "Log driver json-file disallows options: awslogs-region",
		},
		"a file system of no id": {
			efs(func(e *types.EFSVolumeConfiguration) { e.FileSystemId = aws.String("../x") }), client, `fileSystemId "../x"`,
		},
		"an encryption of no kind": {
			efs(func(e *types.EFSVolumeConfiguration) { e.TransitEncryption = "SOME" }), client, "transitEncryption must be one of",
		},
		"a port without encryption": {
			efs(func(e *types.EFSVolumeConfiguration) { e.TransitEncryptionPort = aws.Int32(2999) }), client, "transitEncryptionPort",
		},
		"an access point without encryption": {
			efs(func(e *types.EFSVolumeConfiguration) {
				e.AuthorizationConfig = &types.EFSAuthorizationConfig{AccessPointId: aws.String("fsap-01234567")}
			}), client, "transitEncryption must be ENABLED",
		},
		"an access point with another root": {
			efs(func(e *types.EFSVolumeConfiguration) {
				e.TransitEncryption, e.RootDirectory = types.EFSTransitEncryptionEnabled, aws.String("/x")
				e.AuthorizationConfig = &types.EFSAuthorizationConfig{AccessPointId: aws.String("fsap-01234567")}
			}), client, "rootDirectory",
		},
		"an access point of no id": {
			efs(func(e *types.EFSVolumeConfiguration) {
				e.AuthorizationConfig = &types.EFSAuthorizationConfig{AccessPointId: aws.String("x")}
			}), client, "accessPointId",
		},
		"a data set of no bucket": {dataSet("s3:///p", asItIs), client, "driverOpts with source, of the form s3://bucket/prefix"},
		"a data set elsewhere":    {dataSet("/etc", asItIs), client, "driverOpts with source, of the form s3://bucket/prefix"},
		"a data set without a role": {
			both(dataSet("s3://b", asItIs), func(in *ecs.RegisterTaskDefinitionInput) { in.TaskRoleArn = nil }), client, "taskRoleArn",
		},
		"a data set with other options": {
			dataSet("s3://b", func(d *types.DockerVolumeConfiguration) { d.DriverOpts["o"] = "rw" }), client, "no driverOpts but source",
		},
		"a shared data set": {
			dataSet("s3://b", func(d *types.DockerVolumeConfiguration) { d.Scope = types.ScopeShared }), client, "scope task",
		},
		"a data set with labels": {
			dataSet("s3://b", func(d *types.DockerVolumeConfiguration) { d.Labels = map[string]string{"a": "b"} }), client, "labels",
		},
		"S3 Files":                    {ofVolume(types.Volume{S3filesVolumeConfiguration: &types.S3FilesVolumeConfiguration{}}), client, "S3 Files"},
		"a range of ports backwards":  {mapping(types.PortMapping{ContainerPortRange: aws.String("8002-8000")}), client, `not "8002-8000"`},
		"a range of one port":         {mapping(types.PortMapping{ContainerPortRange: aws.String("8000-8000")}), client, "the first less than the last"},
		"a range of too high ports":   {mapping(types.PortMapping{ContainerPortRange: aws.String("8000-65536")}), client, "between 1 and 65535"},
		"a range of no ports":         {mapping(types.PortMapping{ContainerPortRange: aws.String("all")}), client, `not "all"`},
		"a range with a port":         {mapping(types.PortMapping{ContainerPortRange: aws.String("1-2"), ContainerPort: aws.Int32(1)}), client, "neither containerPort"},
		"a range with a port of host": {mapping(types.PortMapping{ContainerPortRange: aws.String("1-2"), HostPort: aws.Int32(1)}), client, "nor hostPort"},
		"a port in a range, too": {
			mapping(types.PortMapping{ContainerPortRange: aws.String("80-90")}, types.PortMapping{ContainerPort: aws.Int32(90)}), client, "port 90/tcp is in two",
		},
		"ranges that overlap": {
			mapping(types.PortMapping{ContainerPortRange: aws.String("1-9")}, types.PortMapping{ContainerPortRange: aws.String("7-8")}), client, "port 7/tcp",
		},
		"too many ranges": {mapping(slices.Repeat([]types.PortMapping{{ContainerPortRange: aws.String("1-9")}}, 101)...), client, "101 containerPortRanges"},
		"a range of the machine's ports": {
			both(mapping(types.PortMapping{ContainerPortRange: aws.String("1-9")}), func(in *ecs.RegisterTaskDefinitionInput) {
				in.NetworkMode = types.NetworkModeHost
			}), client, "bridge or awsvpc, not host",
		},
		"EBS with what is in the definition": {
			ofVolume(types.Volume{
				ConfiguredAtLaunch: aws.Bool(true), EfsVolumeConfiguration: &types.EFSVolumeConfiguration{FileSystemId: aws.String("fs-01234567")},
			}), client, "configured at launch",
		},
		"EBS twice": {
			func(in *ecs.RegisterTaskDefinitionInput) {
				in.Volumes = []types.Volume{
					{Name: aws.String("a"), ConfiguredAtLaunch: aws.Bool(true)}, {Name: aws.String("b"), ConfiguredAtLaunch: aws.Bool(true)},
				}
			}, client, `not both "a" and "b"`,
		},
		"Elastic Inference": {
			func(in *ecs.RegisterTaskDefinitionInput) { in.InferenceAccelerators = []types.InferenceAccelerator{{}} },
			client, "inferenceAccelerators",
		},
		"more GPUs than can be added up": {
			ofContainer(func(c *types.ContainerDefinition) {
				c.ResourceRequirements = []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("4611686018427387904")}}
			}),
			client, `whole number from 1 to 2147483647, not "4611686018427387904"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := store.Revision()
			_, err := s.RegisterTaskDefinition(t.Context(), definition(c.change))
			expectRefused(t, store, before, err, c.code, c.says)
		})
	}
}

// TestMissingAttributes: a task that asks for what no node has isn't placed, and the failure names what is missing.
func TestMissingAttributes(t *testing.T) {
	s, _ := newTestService(t)
	arn := registerNode(t, s)
	for _, c := range []struct {
		name   string
		change func(*ecs.RegisterTaskDefinitionInput)
		want   string // the failure's detail; "" where the task is placed
	}{
		{
			"EFS",
			ofVolume(types.Volume{EfsVolumeConfiguration: &types.EFSVolumeConfiguration{FileSystemId: aws.String("fs-01234567")}}),
			"Missing attribute: ecs.capability.efs.",
		},
		{
			"FireLens", withFirelens(types.FirelensConfiguration{Type: "fluentbit"}, nil, ""),
			"Missing attributes: com.amazonaws.ecs.capability.logging-driver.awsfirelens, ecs.capability.firelens.fluentbit.",
		},
		{
			"another architecture",
			func(in *ecs.RegisterTaskDefinitionInput) {
				in.RuntimePlatform = &types.RuntimePlatform{CpuArchitecture: "ARM64"}
			},
			"Missing attribute: ecs.cpu-architecture=arm64.",
		},
		{
			"Windows",
			func(in *ecs.RegisterTaskDefinitionInput) {
				in.RuntimePlatform = &types.RuntimePlatform{OperatingSystemFamily: types.OSFamilyWindowsServer2022Core}
			},
			"Missing attribute: ecs.os-family=WINDOWS_SERVER_2022_CORE.",
		},
		{
			"the node's platform",
			func(in *ecs.RegisterTaskDefinitionInput) {
				in.RuntimePlatform = &types.RuntimePlatform{CpuArchitecture: "X86_64", OperatingSystemFamily: "LINUX"}
			},
			"",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := s.RegisterTaskDefinition(t.Context(), definition(c.change)); err != nil {
				t.Fatal(err)
			}
			run, err := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("d")})
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(run.Tasks) != 1 || aws.ToString(run.Tasks[0].Attributes[0].Value) != "x86_64" {
					t.Errorf("got %+v", run)
				}
				return
			}
			start, err := s.StartTask(t.Context(), &ecs.StartTaskInput{TaskDefinition: aws.String("d"), ContainerInstances: []string{arn}})
			if err != nil {
				t.Fatal(err)
			}
			for _, failures := range [][]types.Failure{run.Failures, start.Failures} {
				if len(failures) != 1 || *failures[0].Reason != "ATTRIBUTE" || aws.ToString(failures[0].Detail) != c.want {
					t.Errorf("got %+v, want %q", failures, c.want)
				}
			}
		})
	}
}

// mapping maps ports of the container.
func mapping(ports ...types.PortMapping) func(*ecs.RegisterTaskDefinitionInput) {
	return ofContainer(func(c *types.ContainerDefinition) { c.PortMappings = ports })
}

// TestPortRange: a range is kept as it is, and needs an agent that maps it.
func TestPortRange(t *testing.T) {
	s, _ := newTestService(t)
	for _, mode := range []types.NetworkMode{types.NetworkModeBridge, types.NetworkModeAwsvpc} {
		change := mapping(types.PortMapping{ContainerPortRange: aws.String("8000-8010"), Protocol: types.TransportProtocolUdp},
			types.PortMapping{ContainerPort: aws.Int32(8000)})
		out, err := s.RegisterTaskDefinition(t.Context(), definition(both(change, func(in *ecs.RegisterTaskDefinitionInput) { in.NetworkMode = mode })))
		if err != nil {
			t.Fatal(err)
		}
		p := out.TaskDefinition.ContainerDefinitions[0].PortMappings[0]
		needs := slices.ContainsFunc(out.TaskDefinition.RequiresAttributes, func(a types.Attribute) bool {
			return *a.Name == "ecs.capability.network.container-port-range"
		})
		if aws.ToString(p.ContainerPortRange) != "8000-8010" || p.ContainerPort != nil || p.HostPort != nil || !needs {
			t.Errorf("%s: it has %+v, %+v", mode, p, out.TaskDefinition.RequiresAttributes)
		}
	}
}

// TestHostPorts: the host port of a mapping that has none, or 0, is the container's where containers have the machine's network or their
// task's own.
func TestHostPorts(t *testing.T) {
	for mode, want := range map[types.NetworkMode]int32{
		types.NetworkModeBridge: 0, types.NetworkModeHost: 80, types.NetworkModeAwsvpc: 80,
	} {
		for _, given := range []*int32{nil, aws.Int32(0), aws.Int32(80)} {
			got := portDefaults(types.PortMapping{ContainerPort: aws.Int32(80), HostPort: given}, mode)
			if *got.HostPort != max(want, aws.ToInt32(given)) || got.Protocol != types.TransportProtocolTcp {
				t.Errorf("%s, %v given: %d/%s", mode, aws.ToInt32(given), *got.HostPort, got.Protocol)
			}
		}
	}
}
