package test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamplesAreValid: the examples' templates, and those that their CDK apps synthesize, pass cfn-lint, the schemas that CloudFormation
// publishes, and Pintle's own validation; their configurations for Terraform are valid and formatted.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	templates, apps, configurations := findExamples(t)
	t.Run("templates", func(t *testing.T) {
		t.Parallel()
		p := Up(t, "c5.large")
		for _, template := range templates {
			p.AWS("cloudformation", "validate-template", "--template-body", "file://"+template)
		}
		p.AWS("ssm", "put-parameter", "--name", "/cdk-bootstrap/hnb659fds/version", "--type", "String", "--value", "27") // of the CDK's bootstrap
		for _, app := range apps {
			templates = append(templates, synthesize(t, p, app)...)
		}
		schemas := publishedSchemas(t)
		for _, template := range templates {
			out, err := p.Command(bin(t, "pintle"), "compare", "--exit-code", "--schemas", schemas, template).CombinedOutput()
			if err != nil || string(out) != "nothing differs\n" {
				t.Errorf("pintle compare %s: %v\n%s", template, err, out)
			}
		}
		lint := []string{"-c", "import sys, cfnlint.runner; sys.exit(cfnlint.runner.main())", "--ignore-checks", "W3010", "--"} // the CDK names zones
		if out, err := exec.Command(python, append(lint, templates...)...).CombinedOutput(); err != nil {
			t.Errorf("cfn-lint: %v\n%s", err, out)
		}
	})
	t.Run("terraform", func(t *testing.T) {
		t.Parallel()
		plugins := findTerraform(t)
		for _, folder := range configurations {
			validateTerraform(t, plugins, folder)
		}
	})
}

// TestExamplesSayWhy: the scripts show why a stack failed, among however many events that came at once.
func TestExamplesSayWhy(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.large")
	template := `{"Resources": {"Bad": {"Type": "AWS::ECS::TaskDefinition", "DependsOn": ["Q1"], "Properties": {"Family": "not a name"}}`
	for i := range 20 {
		template += fmt.Sprintf(`, "Q%d": {"Type": "AWS::SQS::Queue"}`, i)
	}
	path := filepath.Join(t.TempDir(), "template.json")
	if err := os.WriteFile(path, []byte(template+"}}"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := p.Command("bash", "-c", `set -euo pipefail; . ../examples/steps.sh; deploy many "$1"`, "-", path).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "CREATE_FAILED  Bad") {
		t.Errorf("%v\n%s", err, out)
	}
}

// findExamples returns the templates among the examples, and the folders with an app of the CDK or a configuration of Terraform.
func findExamples(t *testing.T) (templates, apps, configurations []string) {
	t.Helper()
	err := filepath.WalkDir("../examples", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == "node_modules":
			return fs.SkipDir
		case d.Name() == "cdk.json":
			apps = append(apps, filepath.Dir(path))
		case d.Name() == "main.tf":
			configurations = append(configurations, filepath.Dir(path))
		case filepath.Ext(path) == ".yml":
			text, err := os.ReadFile(path)
			if bytes.HasPrefix(text, []byte("AWSTemplateFormatVersion:")) {
				templates = append(templates, path)
			}
			return err
		}
		return nil
	})
	if err != nil || len(templates) < 3 || len(apps) == 0 || len(configurations) == 0 {
		t.Fatalf("of the examples there are only %v, %v, %v: %v", templates, apps, configurations, err)
	}
	return templates, apps, configurations
}

// synthesize returns the templates of an app of the CDK.
func synthesize(t *testing.T, p *Pintle, app string) []string {
	t.Helper()
	c := &cdk{Pintle: p, app: t.TempDir(), modules: installFromNPM(t, cdkPackages...), home: t.TempDir()}
	if err := os.CopyFS(c.app, os.DirFS(app)); err != nil {
		t.Fatal(err)
	}
	c.run("synth", "--quiet")
	found, err := filepath.Glob(filepath.Join(c.app, "cdk.out", "*.template.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("cdk synth of %s makes no template: %v", app, err)
	}
	return found
}

// publishedSchemas returns a directory with what CloudFormation publishes of the types of us-east-1. cfn-lint brings it.
func publishedSchemas(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command(python, "-c", `
import os, sys, cfnlint.data.schemas, cfnlint.data.schemas.providers.us_east_1 as here
resources = os.path.join(os.path.dirname(cfnlint.data.schemas.__file__), "resources")
for name in set(here.types.values()):
    os.symlink(os.path.join(resources, name + ".json"), os.path.join(sys.argv[1], name + ".json"))
`, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("this test needs cfn-lint 1.51 or later (pip install cfn-lint): %v\n%s", err, out)
	}
	return dir
}

// validateTerraform has Terraform check a folder's configuration and its form.
func validateTerraform(t *testing.T, plugins, folder string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"fmt", "-check", "-diff", "-recursive"}, {"init", "-plugin-dir=" + plugins}, {"validate"}} {
		cmd := exec.Command("terraform", append([]string{"-chdir=" + dir}, args...)...)
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("terraform %s of %s: %v\n%s", args[0], folder, err, out)
		}
	}
}
