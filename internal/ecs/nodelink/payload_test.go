package nodelink

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestPayload compares a task that uses every feature with testdata/payload.json.
func TestPayload(t *testing.T) {
	got := indented(t, Payload(wholeTask(), wholeDefinition()))
	golden := filepath.Join("testdata", "payload.json")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the payload has changed (run the test with -update if it should):\n%s", got)
	}
}

// TestPayloadLeavesRows checks that overrides are not merged into the rows themselves.
func TestPayloadLeavesRows(t *testing.T) {
	task, td := wholeTask(), wholeDefinition()
	Payload(task, td)
	if !reflect.DeepEqual(task, wholeTask()) || !reflect.DeepEqual(td, wholeDefinition()) {
		t.Error("the rows have changed")
	}
}

// TestSwappinessNeedsMaxSwap: without maxSwap it's ignored (API_LinuxParameters).
func TestSwappinessNeedsMaxSwap(t *testing.T) {
	for maxSwap, want := range map[*int32]bool{nil: false, aws.Int32(0): true} {
		var out acs.HostConfig
		addLinuxParameters(&out, &types.LinuxParameters{Swappiness: aws.Int32(10), MaxSwap: maxSwap}, 32)
		if given := out.MemorySwappiness != nil; given != want {
			t.Errorf("maxSwap given: %v, swappiness given: %v", maxSwap != nil, given)
		}
	}
}

// TestImagesOfARevision: tasks of a service run the images that the first task of their revision found.
func TestImagesOfARevision(t *testing.T) {
	p := acs.Task{Containers: []acs.Container{{Name: "main", Image: "app:1"}, {Name: "side", Image: "side"}}}
	pinImages(&p, nil)
	pinImages(&p, &state.ServiceRevision{ServiceRevision: types.ServiceRevision{ContainerImages: []types.ContainerImage{
		{ContainerName: aws.String("main"), Image: aws.String("app:1"), ImageDigest: aws.String("sha256:1")},
		{ContainerName: aws.String("side"), Image: aws.String("side")},
	}}})
	if p.Containers[0].Image != "app:1@sha256:1" || p.Containers[1].Image != "side" {
		t.Errorf("%+v", p.Containers)
	}
}

// TestPayloadShape checks the smallest task against the fields that Amazon's agent was seen to take.
func TestPayloadShape(t *testing.T) {
	td := definitionRow()
	td.Cpu = aws.String("256")
	td.Memory = aws.String("64")
	b, err := json.Marshal(Payload(taskRow("one", "RUNNING", "PENDING"), td))
	if err != nil {
		t.Fatal(err)
	}
	var p map[string]any
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"arn": taskArn("one"), "family": "hello", "version": "1", "desiredStatus": "RUNNING", "taskClusterArn": clusterArn,
		"networkMode": "bridge", "cpu": 0.25, "memory": 64.0, "overrides": "{}",
	} {
		if p[name] != want {
			t.Errorf("%s is %v, not %v", name, p[name], want)
		}
	}
	c := p["containers"].([]any)[0].(map[string]any)
	for name, want := range map[string]any{
		"name": "main", "image": "busybox", "essential": true, "overrides": "{}", "cpu": 0.0, "memory": 0.0,
		"environment": map[string]any{},
		"dockerConfig": map[string]any{"version": "1.17", "config": "{}",
			"hostConfig": `{"NetworkMode":"bridge","LogConfig":{"Type":"json-file"}}`},
	} {
		if !reflect.DeepEqual(c[name], want) {
			t.Errorf("the container's %s is %v, not %v", name, c[name], want)
		}
	}
}

// TestLogStream: a log stream has its prefix, its container and its task in its name before a node hears of it, because Docker's log
// driver knows no prefixes.
func TestLogStream(t *testing.T) {
	for _, c := range []struct {
		name    string
		driver  types.LogDriver
		options map[string]string
		want    map[string]string
	}{
		{"no prefix", "awslogs", map[string]string{"awslogs-group": "g"}, map[string]string{"awslogs-group": "g"}},
		{"a prefix", "awslogs", map[string]string{"awslogs-stream-prefix": "p"}, map[string]string{"awslogs-stream": "p/main/one"}},
		{"an empty prefix", "awslogs", map[string]string{"awslogs-stream-prefix": ""}, map[string]string{}},
		{
			"a stream of one's own", "awslogs",
			map[string]string{"awslogs-stream-prefix": "p", "awslogs-stream": "s"}, map[string]string{"awslogs-stream": "s"},
		},
		{"another driver", "splunk", map[string]string{"awslogs-stream-prefix": "p"}, map[string]string{"awslogs-stream-prefix": "p"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			td := definitionRow()
			td.ContainerDefinitions[0].LogConfiguration = &types.LogConfiguration{LogDriver: c.driver, Options: c.options}
			var host acs.HostConfig
			p := Payload(taskRow("one", "RUNNING", "PENDING"), td)
			if err := json.Unmarshal([]byte(p.Containers[0].DockerConfig.HostConfig), &host); err != nil {
				t.Fatal(err)
			}
			if got := host.LogConfig.Config; len(got)+len(c.want) > 0 && !reflect.DeepEqual(got, c.want) {
				t.Errorf("options %v, want %v", got, c.want)
			}
		})
	}
}

func TestRoles(t *testing.T) {
	task, td := taskRow("a", "RUNNING", "PENDING"), definitionRow()
	if got := roleOf(task, td, acs.TaskRole); got != "" {
		t.Errorf("without a role: %q", got)
	}
	td.TaskRoleArn = aws.String("task")
	td.ExecutionRoleArn = aws.String("execution")
	task.Overrides = &types.TaskOverride{TaskRoleArn: aws.String("other")}
	if got := roleOf(task, td, acs.TaskRole); got != "other" {
		t.Errorf("the task role is %q", got)
	}
	if got := roleOf(task, td, acs.ExecutionRole); got != "execution" {
		t.Errorf("the execution role is %q", got)
	}
}

func wholeTask() *state.Task {
	t := taskRow("whole", "RUNNING", "PENDING", "GPU-1", "GPU-0")
	t.Group = aws.String("service:trainer")
	t.LaunchType = types.LaunchTypeExternal
	t.Containers[0].ContainerArn = aws.String("arn:aws:ecs:us-east-1:000000000000:container/poc/whole/main")
	t.Overrides = &types.TaskOverride{
		Memory: aws.String("2048"),
		ContainerOverrides: []types.ContainerOverride{{
			Name:                 aws.String("main"),
			Command:              []string{"train", "--fast"},
			Cpu:                  aws.Int32(512),
			Memory:               aws.Int32(1024),
			MemoryReservation:    aws.Int32(512),
			Environment:          []types.KeyValuePair{{Name: aws.String("EPOCHS"), Value: aws.String("7")}, {Name: aws.String("EMPTY")}},
			EnvironmentFiles:     []types.EnvironmentFile{{Type: "s3", Value: aws.String("arn:aws:s3:::b/more.env")}},
			ResourceRequirements: []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("2")}},
		}},
	}
	return t
}

func wholeDefinition() *state.TaskDefinition {
	td := definitionRow()
	td.Revision = 12
	td.Cpu = aws.String("1536")
	td.Memory = aws.String("4096")
	td.PidMode = "task"
	td.IpcMode = "host"
	td.NetworkMode = "bridge"
	td.ExecutionRoleArn = aws.String("arn:aws:iam::000000000000:role/execution")
	td.EnableFaultInjection = aws.Bool(true)
	td.Volumes = []types.Volume{
		{Name: aws.String("scratch")},
		{Name: aws.String("data"), Host: &types.HostVolumeProperties{SourcePath: aws.String("/data")}},
		{Name: aws.String("cache"), DockerVolumeConfiguration: &types.DockerVolumeConfiguration{
			Scope:         "shared",
			Autoprovision: aws.Bool(true),
			Driver:        aws.String("local"),
			DriverOpts:    map[string]string{"type": "tmpfs"},
			Labels:        map[string]string{"a": "b"},
		}},
		{Name: aws.String("shared"), EfsVolumeConfiguration: &types.EFSVolumeConfiguration{
			FileSystemId:          aws.String("fs-0123456789abcdef0"),
			RootDirectory:         aws.String("/models"),
			TransitEncryption:     types.EFSTransitEncryptionEnabled,
			TransitEncryptionPort: aws.Int32(2049),
			AuthorizationConfig:   &types.EFSAuthorizationConfig{AccessPointId: aws.String("fsap-1"), Iam: types.EFSAuthorizationConfigIAMEnabled},
		}},
	}
	td.ContainerDefinitions = []types.ContainerDefinition{wholeContainer(), {
		Name:        aws.String("sidecar"),
		Image:       aws.String("sidecar:2"),
		Essential:   aws.Bool(false),
		VolumesFrom: []types.VolumeFrom{{SourceContainer: aws.String("main"), ReadOnly: aws.Bool(true)}},
		DependsOn:   []types.ContainerDependency{{ContainerName: aws.String("main"), Condition: "HEALTHY"}},
		LogConfiguration: &types.LogConfiguration{
			LogDriver: types.LogDriverAwsfirelens,
			Options:   map[string]string{"Name": "stdout"},
		},
		DisableNetworking: aws.Bool(true),
		CredentialSpecs:   []string{"credentialspec:arn:aws:ssm:us-east-1:000000000000:parameter/spec"},
	}, {
		Name:  aws.String("router"),
		Image: aws.String("router:3"),
		FirelensConfiguration: &types.FirelensConfiguration{
			Type:    types.FirelensConfigurationTypeFluentbit,
			Options: map[string]string{"enable-ecs-log-metadata": "true"},
		},
	}}
	return td
}

func wholeContainer() types.ContainerDefinition {
	return types.ContainerDefinition{
		Name:   aws.String("main"),
		Image:  aws.String("registry.example/train:1"),
		Cpu:    256,
		Memory: aws.Int32(4096),
		RepositoryCredentials: &types.RepositoryCredentials{
			CredentialsParameter: aws.String("arn:aws:secretsmanager:eu-west-1:000000000000:secret:pull"),
		},
		EntryPoint:       []string{"/init"},
		Command:          []string{"train"},
		WorkingDirectory: aws.String("/train"),
		User:             aws.String("1000:1000"),
		Hostname:         aws.String("trainer"),
		Environment: []types.KeyValuePair{{
			Name:  aws.String("EPOCHS"),
			Value: aws.String("3"),
		}, {
			Name:  aws.String("LR"),
			Value: aws.String("0.1"),
		}},
		EnvironmentFiles: []types.EnvironmentFile{{Type: "s3", Value: aws.String("arn:aws:s3:::b/base.env")}},
		Secrets: []types.Secret{
			{Name: aws.String("TOKEN"), ValueFrom: aws.String("arn:aws:secretsmanager:us-east-1:000000000000:secret:token")},
			{Name: aws.String("PLAIN"), ValueFrom: aws.String("/plain")},
		},
		PortMappings: []types.PortMapping{
			{ContainerPort: aws.Int32(80), HostPort: aws.Int32(0), Protocol: "tcp"},
			{ContainerPortRange: aws.String("9000-9010"), Protocol: "udp"},
		},
		MountPoints:  []types.MountPoint{{SourceVolume: aws.String("data"), ContainerPath: aws.String("/data"), ReadOnly: aws.Bool(true)}},
		Links:        []string{"sidecar:s"},
		StartTimeout: aws.Int32(60),
		StopTimeout:  aws.Int32(90),
		RestartPolicy: &types.ContainerRestartPolicy{
			Enabled:              aws.Bool(true),
			IgnoredExitCodes:     []int32{3},
			RestartAttemptPeriod: aws.Int32(120),
		},
		HealthCheck: &types.HealthCheck{
			Command:     []string{"CMD-SHELL", "test -e /ok"},
			Interval:    aws.Int32(5),
			Timeout:     aws.Int32(2),
			Retries:     aws.Int32(4),
			StartPeriod: aws.Int32(10),
		},
		LogConfiguration: &types.LogConfiguration{
			LogDriver: "awslogs",
			Options:   map[string]string{"awslogs-group": "train", "awslogs-stream-prefix": "ml"},
			SecretOptions: []types.Secret{{
				Name:      aws.String("key"),
				ValueFrom: aws.String("arn:aws:ssm:us-east-1:000000000000:parameter/key"),
			}},
		},
		Privileged:             aws.Bool(true),
		ReadonlyRootFilesystem: aws.Bool(true),
		Interactive:            aws.Bool(true),
		PseudoTerminal:         aws.Bool(true),
		DockerLabels:           map[string]string{"team": "ml"},
		DnsServers:             []string{"10.0.0.2"},
		DnsSearchDomains:       []string{"example"},
		DockerSecurityOptions:  []string{"no-new-privileges"},
		ExtraHosts:             []types.HostEntry{{Hostname: aws.String("store"), IpAddress: aws.String("10.0.0.3")}},
		Ulimits:                []types.Ulimit{{Name: "nofile", SoftLimit: 1024, HardLimit: 4096}},
		SystemControls:         []types.SystemControl{{Namespace: aws.String("net.core.somaxconn"), Value: aws.String("1024")}},
		LinuxParameters: &types.LinuxParameters{
			InitProcessEnabled: aws.Bool(true),
			SharedMemorySize:   aws.Int32(64),
			MaxSwap:            aws.Int32(256),
			Swappiness:         aws.Int32(0),
			Capabilities:       &types.KernelCapabilities{Add: []string{"SYS_PTRACE"}, Drop: []string{"MKNOD"}},
			Devices: []types.Device{
				{HostPath: aws.String("/dev/fuse")},
				{
					HostPath:      aws.String("/dev/a"),
					ContainerPath: aws.String("/dev/b"),
					Permissions:   []types.DeviceCgroupPermission{"read", "mknod"},
				},
			},
			Tmpfs: []types.Tmpfs{{ContainerPath: aws.String("/tmp"), Size: 32, MountOptions: []string{"noexec"}}},
		},
	}
}

// TestRegistryAuthentication: images of the account's own registry need a token, as the execution role if there is one; others need nothing.
func TestRegistryAuthentication(t *testing.T) {
	const own = "000000000000.dkr.ecr.us-east-1.amazonaws.com/app:v1"
	for _, c := range []struct {
		name, image string
		hasRole     bool
		want        *acs.ECRAuthData
	}{
		{"its own", own, false, &acs.ECRAuthData{Region: "us-east-1", RegistryID: "000000000000"}},
		{"as the role", own, true, &acs.ECRAuthData{Region: "us-east-1", RegistryID: "000000000000", UseExecutionRole: true}},
		{"below an address", "000000000000.dkr.ecr.us-east-1.127.0.0.1/app:v1", false, &acs.ECRAuthData{Region: "us-east-1", RegistryID: "000000000000"}},
		{"below localhost", "000000000000.dkr.ecr.us-east-1.localhost:4566/app:v1", false, &acs.ECRAuthData{Region: "us-east-1", RegistryID: "000000000000"}},
		{"below another host", "000000000000.dkr.ecr.us-east-1.example.com/app:v1", true, nil},
		{"another account's", "111111111111.dkr.ecr.us-east-1.amazonaws.com/app:v1", true, nil},
		{"another region's", "000000000000.dkr.ecr.eu-west-1.amazonaws.com/app:v1", true, nil},
		{"nobody's", "busybox", true, nil},
	} {
		got := registryAuthentication(types.ContainerDefinition{Image: &c.image}, "arn:aws:ecs:us-east-1:000000000000:task/default/one", c.hasRole)
		if (got == nil) != (c.want == nil) || got != nil && (got.Type != "ecr" || *got.ECRAuthData != *c.want) {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
	secret := &types.RepositoryCredentials{CredentialsParameter: aws.String("arn:aws:secretsmanager:us-east-1:000000000000:secret:s")}
	got := registryAuthentication(types.ContainerDefinition{Image: aws.String(own), RepositoryCredentials: secret}, "arn:aws:ecs:us-east-1:000000000000:task/default/one", true)
	if got.Type != "asm" {
		t.Errorf("with credentials of its own: %+v", got)
	}
}
