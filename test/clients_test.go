package test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestBoto3 and TestAWSCLI call every implemented operation, and fail if one is missing.
func TestBoto3(t *testing.T)  { callAll(t) }
func TestAWSCLI(t *testing.T) { callAll(t, "aws") }

func callAll(t *testing.T, client ...string) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=2", "--settle", "1s", "--fleet", "local")
	out, err := p.Command(python, append([]string{"operations.py"}, client...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	called := strings.Fields(string(out))
	for _, op := range implemented(t) {
		if !strings.HasPrefix(op, "s3:") && !slices.Contains(called, op) { // TestS3Operations covers S3
			t.Errorf("%s is implemented and was not called", op)
		}
	}
}

// implemented lists the operations of docs/coverage.md, which TestCoverageIsUpToDate checks against the code.
func implemented(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("../docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	service := map[string]string{
		"Amazon ECS": "ecs", "CloudWatch Logs": "logs", "Amazon CloudWatch": "cloudwatch", "AWS STS": "sts", "Amazon EC2": "ec2",
		"EC2 Auto Scaling": "autoscaling", "Application Auto Scaling": "application-autoscaling",
		"Amazon SQS": "sqs", "Amazon SNS": "sns", "Amazon S3": "s3", "AWS CloudFormation": "cloudformation", "AWS Cloud Control API": "cloudcontrol",
		"AWS Systems Manager": "ssm", "AWS Secrets Manager": "secretsmanager", "Amazon ECR": "ecr", "AWS IAM": "iam",
	}
	var out []string
	current := ""
	for line := range strings.Lines(string(b)) {
		if m := regexp.MustCompile(`^## (.+)`).FindStringSubmatch(line); m != nil {
			current = service[strings.TrimSpace(m[1])]
		}
		if m := regexp.MustCompile(`^- \[x\] (\w+)`).FindStringSubmatch(line); m != nil {
			out = append(out, current+":"+m[1])
		}
	}
	if len(out) == 0 {
		t.Fatal("docs/coverage.md lists nothing")
	}
	return out
}

// TestCoverageIsUpToDate fails if docs/coverage.md wasn't generated from this code.
func TestCoverageIsUpToDate(t *testing.T) {
	t.Parallel()
	p := &Pintle{t: t}
	out, err := p.Command(bin(t, "pintle"), "coverage").Output()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("../docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != string(out) {
		t.Error("docs/coverage.md is not what the code implements: run make docs")
	}
}
