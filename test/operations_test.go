package test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBoto3 and TestAWSCLI call every implemented operation, and fail if one is missing. They are among the longest tests, and Go starts
// parallel ones from the last file on, so they are in a file with a late name.
func TestBoto3(t *testing.T)  { callAll(t) }
func TestAWSCLI(t *testing.T) { callAll(t, "aws") }

func callAll(t *testing.T, client ...string) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=2", "--settle", "1s", "--fleet", "local", "--file-systems", t.TempDir())
	cmd := p.Command(python, append([]string{"operations.py"}, client...)...)
	cmd.Env = append(cmd.Env, "CERTIFICATE="+newCertificate(t))
	out, err := cmd.CombinedOutput()
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

// TestUnknownValues: a value that an enum doesn't have is refused, and not taken as if nothing had been asked for.
func TestUnknownValues(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge", "--fleet", "local")
	if out, err := p.Command(python, "enums.py").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// newCertificate writes a certificate for example.com and its key into a directory, which it returns.
func newCertificate(t *testing.T) (dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "example.com"}, DNSNames: []string{"example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, block := range map[string]*pem.Block{
		"certificate.pem": {Type: "CERTIFICATE", Bytes: der},
		"key.pem":         {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
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
		"Elastic Load Balancing": "elbv2", "AWS Cloud Map": "servicediscovery", "AWS Certificate Manager": "acm", "Amazon EFS": "efs",
		"AWS Lambda": "lambda", "Amazon EventBridge": "events", "Amazon EventBridge Scheduler": "scheduler",
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
