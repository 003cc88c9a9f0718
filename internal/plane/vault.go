package plane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/vault"
)

func vaultPath(dir string) string { return filepath.Join(dir, "secrets.key") }

// openVault opens the vault of parameters and secrets. Its key is made at the first start, also in a data directory that is older than
// vaults, but never where something was encrypted with another.
func (p *Plane) openVault() (err error) {
	path := vaultPath(p.options.Data)
	if p.vault, err = vault.Load(path, p.options.SecretsKey); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if p.State.View().HasEncrypted() {
		return fmt.Errorf("%s is missing, and with it the key of all secrets: put it back from a copy; if there is none, "+
			"pintle check --repair --data %s makes a new key, and the secrets' values are lost", path, p.options.Data)
	}
	p.vault, err = vault.Create(path, p.options.SecretsKey)
	return err
}

// checkVault checks the key of secrets for damage. A repair makes a new key.
func checkVault(_ context.Context, dir string, repair bool) ([]file.Damage, error) {
	if _, err := os.Stat(filepath.Join(dir, "state.db")); err != nil {
		return nil, nil // there is no state yet
	}
	path := vaultPath(dir)
	err := vault.Check(path)
	var damage *file.Damage
	switch {
	case errors.As(err, &damage):
	case errors.Is(err, fs.ErrNotExist) && repair: // it's no damage if nothing was encrypted, and a new key does no harm then
		_, err = vault.Create(path, nil)
		return nil, err
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	default:
		return nil, err
	}
	damage.Repair = "makes a new key; the values of secrets and of SecureString parameters are lost"
	if !repair {
		return []file.Damage{*damage}, nil
	}
	damage.Repair = "a new key was made; the values of secrets and of SecureString parameters are lost"
	if err := file.Quarantine(path); err != nil {
		return nil, err
	}
	_, err = vault.Create(path, nil)
	return []file.Damage{*damage}, err
}
