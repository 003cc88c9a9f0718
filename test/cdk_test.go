package test

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// cdkPackages are what TestCDK installs from npm, once for a machine.
var cdkPackages = []string{"aws-cdk@2.1148.1", "aws-cdk-lib@2.276.0", "constructs@10.8.1"}

// cdk is the CDK with an app. Who uses it may do nothing but assume the roles of its bootstrap.
type cdk struct {
	*Pintle
	app, modules, home string
	environment        []string
}

// run runs the CDK's command in the app's folder, and returns what it prints.
func (c *cdk) run(args ...string) string {
	c.t.Helper()
	cmd := c.Command(filepath.Join(c.modules, ".bin", "cdk"), append(args, "--no-color", "--ci", "--no-notices", "--no-version-reporting")...)
	cmd.Dir = c.app
	cmd.Env = append(append(cmd.Env, "HOME="+c.home, "NODE_PATH="+c.modules, "CDK_DISABLE_CLI_TELEMETRY=true"), c.environment...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	c.t.Logf("cdk %s took %.1f s", args[0], time.Since(began).Seconds())
	if err != nil {
		c.t.Fatalf("cdk %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// deploy deploys the app with a message.
func (c *cdk) deploy(message string) string {
	c.t.Helper()
	return c.run("deploy", "--require-approval", "never", "--progress", "events", "--context", "message="+message)
}

// becomeDeveloper has the CDK used by a user who may do nothing but assume the roles of the bootstrap.
func (c *cdk) becomeDeveloper() {
	c.t.Helper()
	c.AWS("iam", "create-user", "--user-name", "developer")
	c.AWS("iam", "put-user-policy", "--user-name", "developer", "--policy-name", "cdk", "--policy-document",
		`{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "arn:aws:iam::*:role/cdk-*"}}`)
	key := strings.Fields(c.AWS("iam", "create-access-key", "--user-name", "developer", "--query", "AccessKey.[AccessKeyId,SecretAccessKey]", "--output", "text"))
	c.environment = append(c.environment, "AWS_ACCESS_KEY_ID="+key[0], "AWS_SECRET_ACCESS_KEY="+key[1])
}

// resources counts what there is of several kinds.
func (c *cdk) resources() (counts string) {
	c.t.Helper()
	for _, kind := range []string{
		"ecs list-clusters clusterArns", "ecs list-task-definitions taskDefinitionArns", "elbv2 describe-load-balancers LoadBalancers",
		"elbv2 describe-target-groups TargetGroups", "autoscaling describe-auto-scaling-groups AutoScalingGroups",
		"servicediscovery list-namespaces Namespaces", "sns list-topics Topics", "sqs list-queues QueueUrls", "secretsmanager list-secrets SecretList",
		"efs describe-file-systems FileSystems", "cloudwatch describe-alarms MetricAlarms", "ec2 describe-vpcs Vpcs", "ec2 describe-addresses Addresses",
		"ec2 describe-security-groups SecurityGroups", "iam list-roles Roles", "iam list-instance-profiles InstanceProfiles",
	} {
		parts := strings.Fields(kind)
		counts += kind + ": " + c.AWS(parts[0], parts[1], "--query", "length("+parts[2]+"||`[]`)", "--output", "text") + "\n"
	}
	return counts
}

// TestCDK: a developer who may only assume the roles of the CDK's bootstrap deploys test/cdk, with the services that people make of ECS,
// changes it, and destroys it. Signatures are checked, and policies bind. Nothing is left but logs, as on AWS.
func TestCDK(t *testing.T) {
	t.Parallel()
	modules := installFromNPM(t, cdkPackages...)
	p := UpSigned(t, "c5.large", "--tls", "auto", "--fleet", "local", "--runtime", "oci", "--settle", "1s", "--reaction", "fast", "--file-systems", t.TempDir())
	p.Endpoint, p.ca = strings.Replace(p.Endpoint, "http:", "https:", 1), filepath.Join(p.data, "tls", "ca.pem")
	c := &cdk{Pintle: p, app: t.TempDir(), modules: modules, home: t.TempDir(), environment: []string{"REPOSITORY=web"}}
	if err := os.CopyFS(c.app, os.DirFS("cdk")); err != nil {
		t.Fatal(err)
	}
	p.pushWeb(t)
	c.run("bootstrap", "--app", "", "aws://000000000000/us-east-1")
	c.becomeDeveloper()
	before := c.resources()
	c.deploy("v1")
	if out := c.deploy("v2"); !strings.Contains(out, "Patterns.Message = v2") {
		t.Errorf("the change didn't come:\n%s", out)
	}
	services := strings.Fields(p.AWS("ecs", "list-services", "--cluster", "patterns", "--query", "serviceArns", "--output", "text"))
	states := p.AWS(append([]string{"ecs", "describe-services", "--cluster", "patterns", "--query", "services[].deployments[].rolloutState", "--output", "text",
		"--services"}, services[:min(10, len(services))]...)...)
	if len(services) != 11 || strings.Trim(strings.ReplaceAll(states, "COMPLETED", ""), " \t") != "" {
		t.Errorf("%d services: %s", len(services), states)
	}
	c.run("destroy", "--force", "--app", "cdk.out")
	if after := c.resources(); after != before {
		t.Errorf("before it there were\n%safter it\n%s", before, after)
	}
}

// pushWeb pushes the image web:v1 to the registry, with a web server.
func (p *Pintle) pushWeb(t *testing.T) {
	t.Helper()
	image := busybox(t)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture = "linux", "amd64"
	config.Config.Cmd = []string{"/bin/sh", "-c", "trap 'exit 0' TERM; echo web > /index.html; httpd -f -p 80 -h / & wait"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	p.AWS("ecr", "create-repository", "--repository-name", "web")
	to, err := name.NewTag(strings.TrimPrefix(p.Endpoint, "https://") + "/web:v1")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // clients of the stack check the certificate
	if err := remote.Write(to, image, p.login(), remote.WithTransport(transport)); err != nil {
		t.Fatal(err)
	}
}
