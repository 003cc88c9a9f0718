package test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// command returns the CDK's command in the app's folder.
func (c *cdk) command(args ...string) *exec.Cmd {
	cmd := c.Command(filepath.Join(c.modules, ".bin", "cdk"), append(args, "--no-color", "--ci", "--no-notices", "--no-version-reporting")...)
	cmd.Dir = c.app
	cmd.Env = append(append(cmd.Env, "HOME="+c.home, "NODE_PATH="+c.modules, "CDK_DISABLE_CLI_TELEMETRY=true"), c.environment...)
	return cmd
}

// run runs the CDK's command in the app's folder, and returns what it prints.
func (c *cdk) run(args ...string) string {
	c.t.Helper()
	began := time.Now()
	out, err := c.command(args...).CombinedOutput()
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

// watch runs cdk watch until an edit of the app is deployed, as isThere says. The CDK takes changes up once it says that it watches.
func (c *cdk) watch(args []string, old, edited string, isThere func() bool) {
	c.t.Helper()
	began := time.Now()
	file := filepath.Join(c.app, "app.js")
	text, err := os.ReadFile(file)
	err = errors.Join(err, os.WriteFile(filepath.Join(c.app, "cdk.json"), []byte(`{"app": "node app.js", "watch": {"include": "app.js"}}`), 0o644))
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := c.command(append([]string{"watch"}, args...)...)
	log, err := os.Create(filepath.Join(c.home, "watch.log"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	says := func() string { out, _ := os.ReadFile(log.Name()); return string(out) }
	defer func() {
		if c.t.Failed() {
			c.t.Log(says())
		}
	}()
	defer func() {
		cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		cmd.Wait()                       //nolint:errcheck // it was told to end
	}()
	Eventually(c.t, "cdk watch has deployed once", func() bool { return strings.Contains(says(), "✨  Total time") })
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), old, edited, 1)), 0o644); err != nil {
		c.t.Fatal(err)
	}
	Eventually(c.t, "cdk watch deploys the edit", isThere)
	c.t.Logf("cdk watch took %.1f s", time.Since(began).Seconds())
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

// TestGPUServiceByTheCDK runs examples/0-gpu-service as its user would: its app is deployed, tasks and machines become more under stress and fewer
// at rest, changes reach the service by --hotswap and by cdk watch alone, and nothing is left once clean.sh has run.
func TestGPUServiceByTheCDK(t *testing.T) {
	t.Parallel()
	modules := installFromNPM(t, cdkPackages...)
	p := Up(t, "c5.large", "--fleet", "local", "--runtime", "process", "--reaction", "fast", "--settle", "1s", "--scale-in", "10s")
	c := &cdk{Pintle: p, app: filepath.Join(t.TempDir(), "cdk"), modules: modules, home: t.TempDir()}
	if err := os.CopyFS(filepath.Dir(c.app), os.DirFS("../examples/0-gpu-service")); err != nil {
		t.Fatal(err)
	}
	script := func(name string) string {
		t.Helper()
		cmd := p.Command(filepath.Join(filepath.Dir(c.app), name))
		cmd.Env = append(cmd.Env, "HOME="+c.home, "NODE_PATH="+modules, "PATH="+filepath.Join(modules, ".bin")+":"+os.Getenv("PATH"),
			"MOST=2", "STRESS_DIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	c.run("bootstrap", "--app", "", "aws://000000000000/us-east-1")
	before := c.resources()
	if out := script("run.sh"); !regexp.MustCompile(`(?s)deployed in .* s\ngrew to 2 in .* s\nshrank to 1 in .* machines too`).MatchString(out) {
		t.Errorf("run.sh says\n%s", out)
	}
	service := func(query string) string {
		return p.AWS("ecs", "describe-services", "--cluster", "gpu-service", "--services", "gpu-service", "--query", "services[0]."+query, "--output", "text")
	}
	changed := func() string {
		return p.AWS("cloudformation", "describe-stacks", "--stack-name", "GpuService", "--query", "Stacks[0].LastUpdatedTime", "--output", "text")
	}
	stack, definition := changed(), service("taskDefinition")
	c.run("deploy", "--hotswap", "--context", "most=2", "--context", "image=debian")
	swapped := service("taskDefinition")
	if swapped == definition {
		t.Errorf("the service still has %s", swapped)
	}
	if now := changed(); now != stack {
		t.Errorf("the stack was changed at %s", now)
	}
	c.watch([]string{"--context", "most=2", "--context", "image=debian"}, "sleep 1; done", "sleep 2; done", func() bool {
		return strings.Contains(p.AWS("ecs", "describe-task-definition", "--task-definition", service("taskDefinition")), "sleep 2; done") &&
			service("deployments[0].rolloutState") == "COMPLETED"
	})
	if now := changed(); now != stack {
		t.Errorf("the stack was changed at %s", now)
	}
	saved := service("taskDefinition")
	script("clean.sh")
	for _, one := range []string{swapped, saved} {
		p.AWS("ecs", "deregister-task-definition", "--task-definition", one) // the stack doesn't know of it, on AWS either
	}
	if after := c.resources(); after != before {
		t.Errorf("before it there were\n%safter it\n%s", before, after)
	}
}

// TestCDKLooksUp: an app finds by its context's look-ups what is there, keeps it in cdk.context.json, and is told why a hosted zone can't be found.
func TestCDKLooksUp(t *testing.T) {
	t.Parallel()
	c := &cdk{Pintle: Up(t, "c5.large"), app: t.TempDir(), modules: installFromNPM(t, cdkPackages...), home: t.TempDir()}
	app := filepath.Join(c.app, "app.js")
	if err := os.WriteFile(app, []byte(`
const cdk = require("aws-cdk-lib");
const { aws_ec2: ec2, aws_route53: route53, aws_sns: sns, aws_ssm: ssm } = cdk;
const app = new cdk.App();
const stack = new cdk.Stack(app, "Found", { env: { account: "000000000000", region: "us-east-1" } });
const vpc = ec2.Vpc.fromLookup(stack, "Vpc", { isDefault: true });
const group = ec2.SecurityGroup.fromLookupByName(stack, "Group", "default", vpc);
const image = new ec2.LookupMachineImage({ name: "amzn2-ami-ecs-hvm-*", owners: ["amazon"] }).getImage(stack);
const topic = ssm.StringParameter.valueFromLookup(stack, "/topic");
new sns.Topic(stack, "Topic", { topicName: topic });
for (const [name, value] of Object.entries({ vpc: vpc.vpcId, zones: vpc.availabilityZones.join(), group: group.securityGroupId, image: image.imageId })) {
  new cdk.CfnOutput(stack, name, { value });
}
if (app.node.tryGetContext("zone")) route53.HostedZone.fromLookup(stack, "Zone", { domainName: "example.com" });
`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.AWS("ssm", "put-parameter", "--name", "/topic", "--type", "String", "--value", "news")
	c.run("bootstrap", "--app", "", "aws://000000000000/us-east-1")
	c.becomeDeveloper()
	out := c.run("deploy", "--app", "node app.js", "--require-approval", "never")
	for _, want := range []string{
		"Found.vpc = " + c.AWS("ec2", "describe-vpcs", "--query", "Vpcs[0].VpcId", "--output", "text"),
		"Found.group = " + c.AWS("ec2", "describe-security-groups", "--query", "SecurityGroups[0].GroupId", "--output", "text"),
		"Found.zones = us-east-1a,us-east-1b", "Found.image = ami-",
	} {
		if !strings.Contains(out, strings.TrimSpace(want)) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}
	kept, err := os.ReadFile(filepath.Join(c.app, "cdk.context.json"))
	if err != nil || !strings.Contains(string(kept), `"ssm:account=000000000000:parameterName=/topic:region=us-east-1": "news"`) {
		t.Errorf("cdk.context.json: %s, %v", kept, err)
	}
	cmd := c.command("synth", "--app", "node app.js", "--context", "zone=1")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "Route 53") {
		t.Errorf("of a hosted zone it says: %v\n%s", err, out)
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
