// Package vaulttest has vaults for tests.
package vaulttest

import (
	"bytes"
	"testing"

	"github.com/pintle/pintle/internal/vault"
)

// New returns the vault of a key that is the byte repeated.
func New(t testing.TB, key byte) *vault.Vault {
	t.Helper()
	v, err := vault.New(bytes.Repeat([]byte{key}, vault.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
