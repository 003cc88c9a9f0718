package store_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestKnowsNoService: the engine is generic. What rows mean, and the SDK's structs in them, is for package state to know.
func TestKnowsNoService(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "internal/store/radix") {
		t.Fatal("the list of imports is not the engine's")
	}
	for path := range strings.Lines(string(out)) {
		if strings.Contains(path, "aws-sdk-go") || strings.HasSuffix(strings.TrimSpace(path), "internal/state") {
			t.Errorf("the engine links %s", strings.TrimSpace(path))
		}
	}
}
