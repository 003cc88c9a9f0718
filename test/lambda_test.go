package test

import "testing"

// TestFunctions runs functions as plain processes of this machine's own Python, through boto3.
func TestFunctions(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=1")
	if out, err := p.Command(python, "lambda.py").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
