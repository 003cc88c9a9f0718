package plane

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/vault"
)

// TestSecretsKey: a start without the right key says so and loses nothing, and no file has a secret.
func TestSecretsKey(t *testing.T) {
	dir := t.TempDir()
	open := func(key []byte) (*Plane, error) {
		return Open(t.Context(), Options{Data: dir, Region: "us-east-1", Account: "000000000000", SecretsKey: key})
	}
	mine := bytes.Repeat([]byte{1}, vault.KeySize)
	p, err := open(mine)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.SSM.PutParameter(t.Context(), &ssm.PutParameterInput{
		Name: aws.String("s"), Value: aws.String("hunter2-hunter2"), Type: types.ParameterTypeSecureString,
	}); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	moved := func() { rename(t, vaultPath(dir), vaultPath(dir)+".away") }
	back := func() { rename(t, vaultPath(dir)+".away", vaultPath(dir)) }
	for _, c := range []struct {
		name          string
		key           []byte
		before, after func()
		want          string
	}{
		{"no key", nil, nil, nil, "a key of yours"},
		{"another key", bytes.Repeat([]byte{2}, vault.KeySize), nil, nil, "another key"},
		{"no file", mine, moved, back, "is missing"},
	} {
		if c.before != nil {
			c.before()
		}
		if p, err := open(c.key); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
			if p != nil {
				p.Close() //nolint:errcheck // the test has failed
			}
		}
		if c.after != nil {
			c.after()
		}
	}
	if p, err = open(mine); err != nil {
		t.Fatal(err)
	}
	defer p.Close() //nolint:errcheck // a test
	out, err := p.SSM.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("s"), WithDecryption: aws.Bool(true)})
	if err != nil || *out.Parameter.Value != "hunter2-hunter2" {
		t.Errorf("got %v %v", out, err)
	}
	checkNoFileHas(t, dir, "hunter2")
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func checkNoFileHas(t *testing.T, dir, secret string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s has the secret", path)
		}
		files++
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("%d files were read: %v", files, err)
	}
}

// TestSecretsKeyIsRepaired: a damaged key is found, and a repair makes a new one.
func TestSecretsKeyIsRepaired(t *testing.T) {
	dir := t.TempDir()
	p, err := Open(t.Context(), Options{Data: dir, Region: "us-east-1", Account: "000000000000"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vaultPath(dir), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Data: dir, Region: "us-east-1", Account: "000000000000"}); err == nil || !strings.Contains(err.Error(), "pintle check") {
		t.Errorf("it starts with %v", err)
	}
	for _, c := range []struct {
		repair bool
		found  int
	}{{false, 1}, {true, 1}, {false, 0}} {
		if found, err := Check(t.Context(), dir, c.repair); err != nil || len(found) != c.found {
			t.Errorf("found %v, %v", found, err)
		}
	}
	if p, err = Open(t.Context(), Options{Data: dir, Region: "us-east-1", Account: "000000000000"}); err != nil {
		t.Fatal(err)
	}
	p.Close() //nolint:errcheck // a test
}

// TestMissingSecretsKey: a check misses a key that something was encrypted with, and says what a repair loses.
func TestMissingSecretsKey(t *testing.T) {
	dir := t.TempDir()
	open := func() *Plane {
		t.Helper()
		p, err := Open(t.Context(), Options{Data: dir, Region: "us-east-1", Account: "000000000000"})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	remove := func() {
		t.Helper()
		if err := os.Remove(vaultPath(dir)); err != nil {
			t.Fatal(err)
		}
	}
	found := func(repair bool, want int) {
		t.Helper()
		damage, err := Check(t.Context(), dir, repair)
		if err != nil || len(damage) != want || want > 0 && (damage[0].Path != vaultPath(dir) || !strings.Contains(damage[0].Repair, "are lost")) {
			t.Errorf("found %v, %v", damage, err)
		}
	}
	if err := open().Close(); err != nil {
		t.Fatal(err)
	}
	remove()
	found(false, 0) // nothing was encrypted
	p := open()
	if _, err := p.SSM.PutParameter(t.Context(), &ssm.PutParameterInput{
		Name: aws.String("s"), Value: aws.String("v"), Type: types.ParameterTypeSecureString,
	}); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	remove()
	found(false, 1)
	found(true, 1)
	found(false, 0)
	if err := open().Close(); err != nil {
		t.Error(err)
	}
}
