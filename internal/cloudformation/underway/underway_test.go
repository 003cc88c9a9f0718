package underway

import (
	"strings"
	"testing"
)

// TestSafely: a panic is an error that says where it was.
func TestSafely(t *testing.T) {
	var nothing *bool
	_, err := Safely(func() (bool, error) { return *nothing, nil })
	if err == nil || !strings.Contains(err.Error(), "underway_test.go") {
		t.Errorf("got %v", err)
	}
	if moved, err := Safely(func() (bool, error) { return true, nil }); !moved || err != nil {
		t.Errorf("got %t %v", moved, err)
	}
}
