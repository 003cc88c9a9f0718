package main

import (
	"strings"
	"testing"
)

func TestParseInstances(t *testing.T) {
	got, err := parseInstances("--fleet", []string{"p3.16xlarge=2", "c5.2xlarge"}, 3)
	if err != nil || len(got) != 3 || got[0] != "p3.16xlarge" || got[2] != "c5.2xlarge" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"p3.16xlarge=0", "p3.16xlarge=x", "nothing", "c5.large=4", "c5.large=9000000000000000000"} {
		if got, err := parseInstances("--fleet", []string{bad}, 3); err == nil || !strings.HasPrefix(err.Error(), "--fleet") {
			t.Errorf("%s is %d nodes, error %v", bad, len(got), err)
		}
	}
	if got, err := parseInstances("--fleet", []string{"c5.large=2", "c5.large=2"}, 3); err == nil {
		t.Errorf("together they are %v", got)
	}
}
