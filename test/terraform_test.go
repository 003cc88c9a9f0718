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
// it: nothing is left but the default VPC, with the machine in it. It needs terraform, and the provider in a directory on this machine, since
// tests fetch nothing.
func TestTerraform(t *testing.T) {
	t.Parallel()
	plugins := findTerraform(t)
	p := Up(t, "c5.large", "--fleet", "local", "--fleet-agent", "--runtime=process", "--image", "busybox=exec sleep 3600", "--file-systems", t.TempDir())
	answers := func(want string, words ...string) {
		t.Helper()
		if got := p.AWS(append(words, "--output", "text")...); got != want {
			t.Errorf("%s: %s, not %s", strings.Join(words, " "), got, want)
		}
	}
	applyAndDestroy(p, plugins, "terraform", func() {
		answers("2", "efs", "describe-file-systems", "--query", "FileSystems[?Name=='models'].NumberOfMountTargets")
		answers("1", "ecs", "describe-services", "--cluster", "render", "--services", "render", "--query", "services[0].runningCount")
		answers("active", "elbv2", "describe-load-balancers", "--names", "web", "--query", "LoadBalancers[0].State.Code")
		answers("2", "sns", "list-subscriptions", "--query", "length(Subscriptions[?contains(TopicArn, ':news')])")
		answers("pages", "ecs", "describe-services", "--cluster", "mesh", "--services", "server",
			"--query", "services[0].deployments[0].serviceConnectResources[].discoveryName")
		Eventually(t, "the service's task is an instance", func() bool {
			return p.AWS("servicediscovery", "discover-instances", "--namespace-name", "corp.local", "--service-name", "web",
				"--query", "Instances[0].Attributes.ECS_SERVICE_NAME", "--output", "text") == "web"
		})
	}, "certificates="+newCertificate(t))
	answers("1", "ec2", "describe-vpcs", "--query", "length(Vpcs)")
	answers("1", "ec2", "describe-security-groups", "--query", "length(SecurityGroups)")
	answers("0", "ec2", "describe-addresses", "--query", "length(Addresses)")
	answers("1", "ec2", "describe-network-interfaces", "--query", "length(NetworkInterfaces)") // the machine's
	answers("0", "ec2", "describe-key-pairs", "--query", "length(KeyPairs)")
	answers("0", "sns", "list-topics", "--query", "length(Topics)")
	answers("0", "sns", "list-subscriptions", "--query", "length(Subscriptions)")
	answers("0", "elbv2", "describe-target-groups", "--query", "length(TargetGroups)")
	answers("0", "servicediscovery", "list-namespaces", "--query", "length(Namespaces)")
	answers("0", "servicediscovery", "list-services", "--query", "length(Services)")
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
