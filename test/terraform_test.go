package test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTerraform applies test/terraform with Terraform's AWS provider, plans it again without a difference, after a SIGKILL too, and destroys
// it. It needs terraform, and the provider in a directory on this machine, since tests fetch nothing.
func TestTerraform(t *testing.T) {
	t.Parallel()
	plugins := findTerraform(t)
	p := Up(t, "c5.large", "--fleet", "local", "--fleet-agent", "--runtime=process", "--image", "busybox=exec sleep 3600", "--file-systems", t.TempDir())
	applyAndDestroy(p, plugins, "terraform", func() {
		if got := p.AWS("efs", "describe-file-systems", "--query", "FileSystems[?Name=='models'].NumberOfMountTargets", "--output", "text"); got != "2" {
			t.Errorf("the file system has %s mount targets", got)
		}
		if running := p.AWS("ecs", "describe-services", "--cluster", "render", "--services", "render",
			"--query", "services[0].runningCount", "--output", "text"); running != "1" {
			t.Errorf("the service runs %s tasks", running)
		}
	})
}

// TestTerraformNetwork is TestTerraform for EC2's network. Nothing is left of it but the default VPC, with the machine in it.
func TestTerraformNetwork(t *testing.T) {
	t.Parallel()
	plugins := findTerraform(t)
	p := Up(t, "c5.large")
	applyAndDestroy(p, plugins, "terraform/network", func() {})
	for what, left := range map[string]struct{ query, want string }{
		"describe-vpcs":               {"length(Vpcs)", "1"},
		"describe-security-groups":    {"length(SecurityGroups)", "1"},
		"describe-addresses":          {"length(Addresses)", "0"},
		"describe-network-interfaces": {"length(NetworkInterfaces)", "1"}, // the machine's
		"describe-key-pairs":          {"length(KeyPairs)", "0"},
	} {
		if n := p.AWS("ec2", what, "--query", left.query, "--output", "text"); n != left.want {
			t.Errorf("%s: %s are left, not %s", what, n, left.want)
		}
	}
}

// TestTerraformTopics is TestTerraform for SNS: topics, who is subscribed, and who tells them. Nothing is left of it.
func TestTerraformTopics(t *testing.T) {
	t.Parallel()
	plugins := findTerraform(t)
	p := Up(t, "c5.large")
	applyAndDestroy(p, plugins, "terraform/topics", func() {
		if got := p.AWS("sns", "list-subscriptions", "--query", "length(Subscriptions)", "--output", "text"); got != "2" {
			t.Errorf("there are %s subscriptions", got)
		}
	})
	for what, query := range map[string]string{"list-topics": "length(Topics)", "list-subscriptions": "length(Subscriptions)"} {
		if n := p.AWS("sns", what, "--query", query, "--output", "text"); n != "0" {
			t.Errorf("%s: %s are left", what, n)
		}
	}
}

// TestTerraformBalancer is TestTerraform for a load balancer with its listener, rules and target group.
func TestTerraformBalancer(t *testing.T) {
	t.Parallel()
	plugins := findTerraform(t)
	p := Up(t, "c5.large")
	applyAndDestroy(p, plugins, "terraform/balancer", func() {
		where := strings.Fields(p.AWS("elbv2", "describe-load-balancers", "--query", "LoadBalancers[0].[State.Code,DNSName]", "--output", "text"))
		if len(where) != 2 || where[0] != "active" {
			t.Errorf("it is %v", where)
		}
	}, "certificates="+newCertificate(t))
	if n := p.AWS("elbv2", "describe-target-groups", "--query", "length(TargetGroups)", "--output", "text"); n != "0" {
		t.Errorf("%s target groups are left", n)
	}
}

// TestTerraformDiscovery is TestTerraform for Cloud Map: namespaces, services, an instance, and services of ECS that register their tasks or
// take part in Service Connect.
func TestTerraformDiscovery(t *testing.T) {
	t.Parallel()
	plugins := findTerraform(t)
	p := Up(t, "c5.large")
	applyAndDestroy(p, plugins, "terraform/discovery", func() {
		Eventually(t, "the service's task is an instance", func() bool {
			return p.AWS("servicediscovery", "discover-instances", "--namespace-name", "corp.local", "--service-name", "web",
				"--query", "Instances[0].Attributes.ECS_SERVICE_NAME", "--output", "text") == "web"
		})
		names := p.AWS("ecs", "describe-services", "--cluster", "mesh", "--services", "server", "--output", "text",
			"--query", "services[0].deployments[0].serviceConnectResources[].discoveryName")
		if names != "pages" {
			t.Errorf("the endpoints of Service Connect: %s", names)
		}
	})
	for what, query := range map[string]string{"list-namespaces": "length(Namespaces)", "list-services": "length(Services)"} {
		if n := p.AWS("servicediscovery", what, "--query", query, "--output", "text"); n != "0" {
			t.Errorf("%s: %s are left", what, n)
		}
	}
}

// findTerraform returns the directory with Terraform's providers, or skips the test.
func findTerraform(t *testing.T) string {
	t.Helper()
	plugins := terraformPlugins()
	if _, err := exec.LookPath("terraform"); err != nil || plugins == "" {
		t.Skip("NOT RUN: terraform, or a plugin directory with registry.terraform.io/hashicorp/aws, is not on this machine; " +
			"TERRAFORM_PLUGINS names such a directory")
	}
	return plugins
}

// applyAndDestroy applies a folder's configuration, plans it again without a difference, after a SIGKILL too, and destroys it. Its variables
// are of the form NAME=VALUE.
func applyAndDestroy(p *Pintle, plugins, folder string, check func(), variables ...string) {
	p.t.Helper()
	dir := p.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		p.t.Fatal(err)
	}
	terraform := func(args ...string) (code int, out string) {
		p.t.Helper()
		cmd := p.Command("terraform", append([]string{"-chdir=" + dir}, args...)...)
		cmd.Env = append(cmd.Env, "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
		for _, v := range variables {
			cmd.Env = append(cmd.Env, "TF_VAR_"+v)
		}
		b, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			p.t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(b)
	}
	must := func(what string, args ...string) {
		p.t.Helper()
		if code, out := terraform(append([]string{what}, args...)...); code != 0 {
			p.t.Fatalf("terraform %s ends with %d:\n%s", what, code, out)
		}
	}
	must("init", "-no-color", "-plugin-dir="+plugins)
	must("apply", "-no-color", "-auto-approve")
	must("plan", "-no-color", "-detailed-exitcode") // 2 says that there is a difference
	check()
	p.Kill()
	p.Start()
	must("plan", "-no-color", "-detailed-exitcode")
	must("destroy", "-no-color", "-auto-approve")
}

// terraformPlugins returns a directory with providers in it, of those in which they are usually kept, or "".
func terraformPlugins() string {
	for _, dir := range []string{"$TERRAFORM_PLUGINS", "$TF_PLUGIN_CACHE_DIR", "$HOME/.terraform.d/plugins", "/opt/*", "/usr/*/terraform/plugins",
		"/usr/local/share/terraform/plugins"} {
		found, err := filepath.Glob(filepath.Join(os.ExpandEnv(dir), "registry.terraform.io", "hashicorp", "aws"))
		if err == nil && len(found) > 0 {
			return filepath.Dir(filepath.Dir(filepath.Dir(found[0])))
		}
	}
	return ""
}
