package test

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	stop, err := StartCLI()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}
