package test

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// grpcPackage is gRPC's own library for Node.js.
const grpcPackage = "@grpc/grpc-js@1.14.7"

// TestGRPC has a client and two servers of gRPC, by gRPC's own library, speak through a load balancer: metadata and trailers, a status with its
// words, streams from a server and both ways, a deadline, and health checks by a method that isn't there.
func TestGRPC(t *testing.T) {
	t.Parallel()
	modules := installFromNPM(t, grpcPackage)
	p := Up(t, "c5.large")
	node := func(args ...string) *exec.Cmd {
		cmd := p.Command("node", append([]string{"grpc.js"}, args...)...)
		cmd.Env = append(cmd.Env, "NODE_PATH="+modules)
		return cmd
	}
	text := func(args ...string) string { t.Helper(); return p.AWS(append(args, "--output", "text")...) }
	group := text("elbv2", "create-target-group", "--name", "echo", "--protocol", "HTTP", "--protocol-version", "GRPC", "--port", "50051", "--target-type", "ip",
		"--vpc-id", text("ec2", "describe-vpcs", "--query", "Vpcs[0].VpcId"), "--health-check-interval-seconds", "5",
		"--health-check-timeout-seconds", "2", "--query", "TargetGroups[0].TargetGroupArn")
	for _, name := range []string{"one", "two"} {
		_, port, _ := net.SplitHostPort(freeAddress(t))
		server := node("serve", port, name)
		out := new(output)
		server.Stdout = out
		if err := server.Start(); err != nil {
			t.Fatal("this test needs Node.js: ", err)
		}
		t.Cleanup(func() {
			server.Process.Kill() //nolint:errcheck // it may have ended
			server.Wait()         //nolint:errcheck // it was killed
		})
		Eventually(t, "a server", func() bool {
			out.mu.Lock()
			defer out.mu.Unlock()
			return strings.Contains(string(out.text), "serving")
		})
		p.AWS("elbv2", "register-targets", "--target-group-arn", group, "--targets", "Id=127.0.0.1,Port="+port)
	}
	dir := newCertificate(t)
	certificate := text("acm", "import-certificate", "--certificate", "fileb://"+filepath.Join(dir, "certificate.pem"),
		"--private-key", "fileb://"+filepath.Join(dir, "key.pem"), "--query", "CertificateArn")
	subnets := strings.Fields(text("ec2", "describe-subnets", "--query", "Subnets[:2].SubnetId"))
	balancer := text("elbv2", "create-load-balancer", "--name", "echo", "--subnets", subnets[0], subnets[1],
		"--query", "LoadBalancers[0].LoadBalancerArn")
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	p.AWS("elbv2", "create-listener", "--load-balancer-arn", balancer, "--protocol", "HTTPS", "--port", port, "--certificates", "CertificateArn="+certificate,
		"--default-actions", "Type=forward,TargetGroupArn="+group)
	Eventually(t, "healthy servers", func() bool {
		return text("elbv2", "describe-target-health", "--target-group-arn", group,
			"--query", "length(TargetHealthDescriptions[?TargetHealth.State=='healthy'])") == "2"
	})
	out, err := node("ask", address, filepath.Join(dir, "certificate.pem"), "5000").CombinedOutput()
	if err != nil || string(out) != "done\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
