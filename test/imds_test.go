package test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstanceMetadata: a task without a role of its own has the credentials of its instance's role, from the instance metadata service. They
// can do what that role may, and end with the instance.
func TestInstanceMetadata(t *testing.T) {
	t.Parallel()
	p := upSigned(t, "oci")
	instance := p.launchWithRole()
	p.AWS("ecs", "register-task-definition", "--family", "idle", "--container-definitions",
		`[{"name":"main","image":"rootfs:`+rootfs(t)+`","entryPoint":["/bin/sh","-c"],"command":["exec sleep 600"],"memory":32,"stopTimeout":2}]`)
	task, _ := p.run(t, "idle", `{}`)
	p.Await(task, "RUNNING")
	paths, err := filepath.Glob(filepath.Join(p.data, "fleet", instance, "networks", "*", "netns"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("the container's networks are %v, %v", paths, err)
	}
	inside := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command("nsenter", append([]string{"--net=" + paths[0], name}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AWS_DEFAULT_REGION=us-east-1", "AWS_ENDPOINT_URL=http://169.254.170.2:51678"}
		out, _ := cmd.CombinedOutput() //nolint:errcheck // the output tells
		return strings.TrimSpace(string(out))
	}
	if got := inside("aws", "sts", "get-caller-identity", "--query", "Arn", "--output", "text"); !strings.HasSuffix(got, ":assumed-role/worker/"+instance) {
		t.Errorf("inside, the AWS CLI is %s", got)
	}
	if got := inside("aws", "ecs", "list-clusters", "--query", "clusterArns", "--output", "text"); !strings.HasSuffix(got, "cluster/default") {
		t.Errorf("what the role may do: %s", got)
	}
	if got := inside("aws", "ecs", "list-task-definitions"); !strings.Contains(got, "AccessDenied") {
		t.Errorf("what the role may not do: %s", got)
	}
	if got := inside("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "http://169.254.169.254/latest/meta-data/"); got != "401" {
		t.Errorf("without a token, where tokens are required: %s", got)
	}
	token := inside("curl", "-s", "-X", "PUT", "-H", "X-aws-ec2-metadata-token-ttl-seconds: 60", "http://169.254.169.254/latest/api/token")
	text := inside("curl", "-s", "-H", "X-aws-ec2-metadata-token: "+token, "http://169.254.169.254/latest/meta-data/iam/security-credentials/worker")
	var role struct{ AccessKeyID, SecretAccessKey, Token string }
	if err := json.Unmarshal([]byte(text), &role); err != nil || role.SecretAccessKey == "" {
		t.Fatalf("the role's credentials are %s", text)
	}
	p.AWS("autoscaling", "update-auto-scaling-group", "--auto-scaling-group-name", "workers", "--min-size", "0", "--desired-capacity", "0")
	Eventually(t, "the end of the role's credentials", func() bool {
		cmd := p.Command("aws", "ecs", "list-clusters")
		cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID="+role.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+role.SecretAccessKey, "AWS_SESSION_TOKEN="+role.Token)
		out, _ := cmd.CombinedOutput() //nolint:errcheck // the output tells
		return strings.Contains(string(out), "ExpiredToken")
	})
}

// TestProcessInstanceMetadata: a task of the runtime process, which shares the machine's network, has its instance's role too.
func TestProcessInstanceMetadata(t *testing.T) {
	t.Parallel()
	p := upSigned(t, "process")
	instance := p.launchWithRole()
	p.AWS("ecs", "register-task-definition", "--family", "who", "--container-definitions",
		`[{"name":"main","image":"i","entryPoint":["/bin/sh","-c"],"memory":32,"command":["aws sts get-caller-identity | grep assumed-role/worker/`+instance+`"]}]`)
	task, _ := p.run(t, "who", `{}`)
	p.Await(task, "STOPPED")
	code := p.AWS("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].containers[0].exitCode", "--output", "text")
	if code != "0" {
		t.Errorf("the task ends with %s", code)
	}
}

// TestBlockedInstanceMetadata: user data may keep tasks of mode awsvpc from the instance metadata service, and no others.
func TestBlockedInstanceMetadata(t *testing.T) {
	t.Parallel()
	p := upSigned(t, "oci")
	script := base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\necho ECS_AWSVPC_BLOCK_IMDS=true >> /etc/ecs/ecs.config\n"))
	instance := p.launch(`"UserData":"` + script + `"`)
	subnet := p.AWS("ec2", "describe-subnets", "--query", "Subnets[0].SubnetId", "--output", "text")
	for mode, c := range map[string]struct {
		networks, want string
		options        []string
	}{
		"bridge": {"networks", instance, nil},
		"awsvpc": {"task-networks", "", []string{"--network-configuration", "awsvpcConfiguration={subnets=[" + subnet + "]}"}},
	} {
		p.AWS("ecs", "register-task-definition", "--family", mode, "--network-mode", mode, "--container-definitions",
			`[{"name":"main","image":"rootfs:`+rootfs(t)+`","entryPoint":["/bin/sh","-c"],"command":["exec sleep 600"],"memory":32,"stopTimeout":2}]`)
		task, _ := p.run(t, mode, `{}`, c.options...)
		p.Await(task, "RUNNING")
		paths, err := filepath.Glob(filepath.Join(p.data, "fleet", instance, c.networks, "*", "netns"))
		if err != nil || len(paths) != 1 {
			t.Fatalf("the networks are %v, %v", paths, err)
		}
		out, _ := exec.Command("nsenter", "--net="+paths[0], "curl", "-s", "http://169.254.169.254/latest/meta-data/instance-id").Output() //nolint:errcheck // the output tells
		if string(out) != c.want {
			t.Errorf("in mode %s the service says %q, want %q", mode, out, c.want)
		}
	}
}

// upSigned starts a control plane that checks signatures, and whose fleet's instances have a runtime.
func upSigned(t *testing.T, runtime string) *Pintle {
	t.Helper()
	address := freeAddress(t)
	p := &Pintle{t: t, Endpoint: "http://" + address, data: t.TempDir(), key: "AKID", secret: "secret"}
	p.args = []string{"up", "--listen", address, "--data", p.data, "--fleet", "local", "--metrics=", "--runtime", runtime, "--reaction", "fast",
		"--access-key-id", "AKID", "--secret-access-key", "secret"}
	p.Start()
	t.Cleanup(p.Interrupt)
	return p
}

// launchWithRole launches an instance whose role may list clusters, and returns its id once it's in the cluster.
func (p *Pintle) launchWithRole() (id string) {
	p.t.Helper()
	const trust = `{"Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
	const policy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ecs:ListClusters","Resource":"*"}]}`
	p.AWS("iam", "create-role", "--role-name", "worker", "--assume-role-policy-document", trust)
	p.AWS("iam", "put-role-policy", "--role-name", "worker", "--policy-name", "list", "--policy-document", policy)
	p.AWS("iam", "create-instance-profile", "--instance-profile-name", "workers")
	p.AWS("iam", "add-role-to-instance-profile", "--instance-profile-name", "workers", "--role-name", "worker")
	return p.launch(`"IamInstanceProfile":{"Name":"workers"},"MetadataOptions":{"HttpTokens":"required"}`)
}

// launch launches an instance of a template that has more than an image and a type, and returns its id once it's in the cluster.
func (p *Pintle) launch(more string) (id string) {
	p.t.Helper()
	p.AWS("ec2", "create-launch-template", "--launch-template-name", "workers", "--launch-template-data",
		`{"ImageId":"ami-0123456789abcdef0","InstanceType":"m5.large",`+more+`}`)
	p.AWS("autoscaling", "create-auto-scaling-group", "--auto-scaling-group-name", "workers", "--launch-template", "LaunchTemplateName=workers",
		"--min-size", "1", "--max-size", "1", "--availability-zones", "us-east-1a")
	Eventually(p.t, "an instance in the cluster", func() bool {
		nodes := p.AWS("ecs", "list-container-instances", "--filter", "agentConnected==true", "--query", "containerInstanceArns[0]", "--output", "text")
		if nodes == "None" {
			return false
		}
		id = p.AWS("ecs", "describe-container-instances", "--container-instances", nodes, "--query", "containerInstances[0].ec2InstanceId", "--output", "text")
		return true
	})
	return id
}
