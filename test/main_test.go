package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	forgetAWS()
	stop, err := StartCLI()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

// forgetAWS removes the caller's own settings of AWS from the environment, so that programs run as for somebody who has none.
func forgetAWS() {
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "AWS_") {
			os.Unsetenv(name) //nolint:errcheck // it was there
		}
	}
}
