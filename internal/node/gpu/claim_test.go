package gpu

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/acs"
)

// TestClaim: only one agent can claim a device.
func TestClaim(t *testing.T) {
	id := func(n int) string { return fmt.Sprintf("GPU-of-test-%d-%d", os.Getpid(), n) }
	if err := Claim([]acs.GPUDevice{{ID: id(1)}, {ID: id(2)}}); err != nil {
		t.Fatal(err)
	}
	if err := Claim([]acs.GPUDevice{{ID: id(3)}}); err != nil {
		t.Errorf("another device: %v", err)
	}
	if err := Claim([]acs.GPUDevice{{ID: id(4)}, {ID: id(2)}}); err == nil || !strings.Contains(err.Error(), id(2)) {
		t.Errorf("a device of which the first has one: %v", err)
	}
}
