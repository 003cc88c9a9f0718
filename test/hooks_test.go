package test

import (
	"net"
	"testing"
)

// TestDeploymentsAskFunctions: a stack's service is deployed as a function likes its new tasks. Policies bind: ECS invokes it as the hook's role.
func TestDeploymentsAskFunctions(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large=1", "--settle", "1s", "--reaction", "fast")
	args := []string{"hooks.py"}
	for range 4 {
		_, port, err := net.SplitHostPort(freeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, port)
	}
	if out, err := p.Command(python, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
